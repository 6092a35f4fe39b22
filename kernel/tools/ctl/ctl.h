/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the commands of stargatectl share. */
#ifndef SG_CTL_H
#define SG_CTL_H

#include <sys/stat.h>
#include "internal.h"
#include "tool.h"

#define CTL_PIECE	(1u << 20)	/* bytes copied at a time */
#define DEPTH_MAX	1024		/* of nested directories */

/**
 * struct call - one command being run.
 * @argv, @argc: its arguments after the volume.
 * @spent: steps taken in trees, see call_may_go_on(). @taken: bytes; @met: bits, see bound.c.
 * @links: files with several names that have been copied, see links.c.
 * @top, @below: the directory that get makes, opened, or -1; the position in paths where it ends.
 * @clamped: put has reported that a time does not fit.
 * @must_be_dir: put's path ends in a slash. @tar: get, put: an archive.
 * @open: systems: the files that they have open. @export: info: for udev.
 * @plain: image: names are kept.
 * @tests, @ntests: find: the arguments after its path.
 * @all, @total, @human: du: files, too; only the sum; sizes for people.
 * @keep: mv: nothing is replaced. @exact: mv, ln: the last path is the name. @symbolic: ln.
 * @volume: the path that was given. @tail: number of arguments in @argv that followed "--".
 * @watch: systems, top: seconds between tables, or 0. @lease_ms: tune: if @lease, the new one;
 * @uuid_id: if @uuid.
 * @size: grow, clone, volume create, resize, clone: wanted, or 0. @align: volume create, clone.
 * @reserve: volume create, clone: memory after the volume that is kept for its growth.
 * @base_given: relocate: to @base; clone: for it. @dry: only tries it. @label: clone, tune: or
 *	NULL.
 * @pid, @machine, @pause_limit: guard. @stall: snapshot, clone: ms, or 0.
 * @memory, @phys_bits, @read_only: of a machine that has a volume.
 */
struct call {
	struct member m;
	const char *volume;
	int tail;
	u64 stall, watch, lease_ms, pid, pause_limit, size, reserve, base, align, memory;
	u64 phys_bits;
	bool lease, machine, base_given, dry, read_only, uuid;
	u8 machine_id[16], uuid_id[16];
	u64 spent, taken, met_room;
	u64 *met;
	struct json j;
	void *links;
	int top;
	size_t below;
	const char *label;
	bool json, recursive, longer, force, parents, clamped, must_be_dir, tar, open, export;
	bool plain, keep, exact, symbolic, all, total, human;
	char **tests;
	int ntests;
	char **argv;
	int argc;
};

static inline struct sg_vol *call_vol(struct call *c)
{
	return &c->m.vol;
}

/*
 * One more step down a tree of the volume: a directory, an index page, an entry. Correct trees have
 * fewer steps than there can be inodes. False (reported): this one goes in circles (D10).
 */
static inline bool call_may_go_on(struct call *c)
{
	u64 limit = (c->m.vol.size >> SG_PAGE_SHIFT) * SG_INODES_PER_PAGE;

	if (c->spent++ == limit)
		tool_error("%s: forms a cycle; run fsck.stargatefs", c->m.target.path);
	return c->spent <= limit;
}

/* --- bound.c ------------------------------------------------------------------------------- */

/*
 * Enter a directory of a tree, or a file with one name. -EUCLEAN, reported: it was met before, so
 * the copy would never end. -ELOOP, reported: in a volume in use, there are more than can exist.
 */
int tree_meet(struct call *c, const char *path, u64 ino);

/**
 * struct piece - an extent of a file that is no hole.
 * @sum: bytes of the file so far.
 */
struct piece {
	u64 pos, end, sum;
};
/*
 * Find the next extent at or after @p->end, of a file of @size bytes. 0: none; < 0, reported. All
 * extents together are at most as large as the volume.
 */
int piece_next(struct call *c, const char *path, const struct sg_iref *ref, u64 size,
	       struct piece *p);

/* --- path.c -------------------------------------------------------------------------------- */

/*
 * "/a/b", or "<N>" for an inode number. Symbolic links on the way are followed, the last one if
 * @follow. Reports errors.
 */
int path_find(struct sg_vol *vol, const char *path, bool follow, struct sg_iref *out,
	      struct sg_attr *attr);
/* The directory that has @path, and the last name of @path. */
int path_parent(struct sg_vol *vol, const char *path, struct sg_iref *dir, const char **name,
		u32 *len);
/* As path_find(), but without reports. */
int path_seek(struct sg_vol *vol, const char *path, bool follow, struct sg_iref *out,
	      struct sg_attr *attr);
int path_error(const char *path, int err);	/* reports it; returns err */
int outside_error(const char *path);		/* the same for errno */
int needs_recursion(const char *path);		/* -EISDIR, reported */
const char *last_name(const char *path);	/* after the last slash */
char *without_slashes(const char *path);	/* at its end; to be freed */

/**
 * struct listing - names of a directory, sorted.
 * @text: the names, in one buffer of their length: there may be millions.
 * @missing: -EUCLEAN when there are more, which are damaged. They have been reported.
 */
struct listed {
	const char *name;
	u32 len;
	unsigned int type;
	u64 ino;
};
struct listing {
	struct listed *item;
	size_t n, room;
	char *text;
	size_t used, text_room;
	int missing;
};
/* Lists the directory called @path. Reports errors. */
int list_dir(struct sg_vol *vol, const struct sg_iref *dir, const char *path, struct listing *out);
void list_free(struct listing *l);

/* --- links.c ------------------------------------------------------------------------------- */

/**
 * struct link_seen - a file that has other names, and has been copied.
 * @dev, @ino: its identity. @other: its number in the volume (put). @path: its name now, below the
 *	directory that is made; @made: the file there (get).
 */
struct link_seen {
	u64 dev, ino, other;
	char *path;
	struct stat made;
};
/* @dev within the volume: directories; other inodes; inodes that this call has moved. */
enum { LINK_DIR, LINK_FILE, LINK_MADE };
const struct link_seen *links_find(void *const *links, u64 dev, u64 ino);
int links_add(void **links, const struct link_seen *what);
void links_free(void **links);

/* --- files.c ------------------------------------------------------------------------------- */

int has_contents(struct call *c);	/* -EOPNOTSUPP, reported: it is a metadata image */

/* --- walk.c -------------------------------------------------------------------------------- */

/**
 * struct visit - a name in a tree that is visited.
 * @path: all of it; @name: its last part. @depth: below the start of the walk.
 * @err: its inode cannot be read, which has been reported; otherwise it is @ref, with @attr.
 */
struct visit {
	const char *path, *name;
	unsigned int depth;
	u64 ino;
	int err;
	struct sg_iref ref;
	struct sg_attr attr;
};
/**
 * struct walk - the functions of a walk through a tree.
 * @see: for each name, a directory's before those in it; @leave: after them. NULL: nothing. They
 *	return 0, or an error that they have reported; the walk continues.
 * @depth: of the deepest names that are visited.
 */
struct walk {
	int (*see)(struct call *c, const struct visit *v, void *ctx);
	int (*leave)(struct call *c, const struct visit *v, void *ctx);
	void *ctx;
	unsigned int depth;
};
/* Follows no symbolic link. 0, or the first error, which has been reported. */
int walk_tree(struct call *c, const char *path, const struct sg_iref *ref, const struct walk *w);

/* --- rename.c ------------------------------------------------------------------------------ */

/* -EPERM, reported: its flags forbid all changes but those of the flags. */
int attr_allows(const char *path, const struct sg_attr *attr);

/* --- attr.c -------------------------------------------------------------------------------- */

/* A number, or the name of a user or group of this machine. */
bool owner_read(const char *text, bool group, u32 *id);

/* --- place.c ------------------------------------------------------------------------------- */

/**
 * struct place - a name in the volume.
 * @taken: it has a meaning now: @old, with @attr.
 */
struct place {
	struct sg_iref dir, old;
	const char *name;
	u32 len;
	bool taken;
	struct sg_attr attr;
};
/* Look up a name for an inode of @mode. Reports an obstacle; @from is the file in the message. */
int place_look(struct call *c, const struct sg_iref *dir, const char *name, u32 mode,
	       const char *from, struct place *p);
/* The name means @ref from now on; the inode that it meant loses a name. */
int place_give(struct call *c, const struct place *p, const struct sg_iref *ref);
/* Kept when a file's contents are replaced: owner, mode, flags, extended attributes. */
int place_inherit(struct call *c, const struct place *p, struct sg_new *new);

/**
 * struct xattrs - extended attributes for a new inode, as struct sg_new has them.
 */
struct xattrs {
	u64 data[SG_XATTR_TOTAL_MAX / 8];
	u32 len;
};
/* -E2BIG: more than an inode can have. */
int xattrs_add(struct xattrs *x, unsigned int space, const char *name, u32 name_len,
	       const void *value, u32 value_len);

/* --- guarded.c ----------------------------------------------------------------------------- */

/**
 * struct guarded - a volume of a machine that is guarded.
 * @lost: it was truncated during a look, which has been reported.
 * @beat: heartbeats last seen.
 * @seen: incarnations of the machine's systems at the last look; @known: at a look after which the
 *	machine was still present.
 */
struct guarded {
	struct target target;
	struct sg_vol vol;
	bool lost;
	u64 beat[SG_SLOTS];
	u32 seen[SG_SLOTS], known[SG_SLOTS];
};
/* Reports errors, and that there is no volume yet, which is no error. */
int guarded_open(struct guarded *v, const char *path);
/*
 * Tell all systems that the machine is present. *any: it uses the volume; *moved: and its heartbeat
 * moves.
 */
void guarded_look(struct guarded *v, const u8 machine[16], bool *any, bool *moved);
void guarded_confirm(struct guarded *v);	/* the machine was still present after the look */
/* The machine has ended. */
void guarded_fence(struct guarded *v, const u8 machine[16]);

/* --- relocate.c ---------------------------------------------------------------------------- */

/**
 * struct relocation - a volume whose addresses are to be adapted to its present base.
 * @base: this base, if @base_given; otherwise the tool finds it.
 * @dry: in a private copy. @force: regard all other systems as dead.
 */
struct relocation {
	const char *path;
	u64 base;
	bool base_given, dry, force;
};
/* Reports errors; nothing on success. */
int relocate_volume(const struct relocation *r, struct sg_relocate_result *out);

/* --- holders.c ----------------------------------------------------------------------------- */

/**
 * struct holder - a process that holds .stargate/region of a volume that is mounted here.
 * @mode: "rw", "ro", or "revoked". @machine: the machine for which it maps region, if @known.
 */
struct holder {
	u64 pid;
	char mode[8], command[32];
	bool known;
	u8 machine[16];
};
#define HOLDERS	128
/* The number of holders without this process; 0 if it is not mounted here. */
unsigned int read_holders(const char *path, struct holder *to, unsigned int room);
/*
 * @dir: the module's folder for the mount of the device @path, or of the region @path. The volume's
 *	own names do not count: a member can write those of another volume, and a snapshot has its
 *	source's.
 */
bool mounted_here(const char *path, char *dir, size_t room);
int own_slot(const char *dir);	/* of the system that has it mounted here, or -1 */
/* -ENXIO: no process here can stop it; -EINVAL: it is this system; -ESTALE: it has gone. */
int ask_to_fence(const char *dir, unsigned int slot, u32 incarnation, bool unheld);

/* --- fence.c ------------------------------------------------------------------------------- */

int fence_system(struct call *c);	/* exit status */

/* --- export.c ------------------------------------------------------------------------------ */

int export_info(struct call *c);	/* exit status */

/* --- opened.c ------------------------------------------------------------------------------ */

int show_opened(struct call *c);	/* exit status */

/* --- reason.c ------------------------------------------------------------------------------ */

#define STATUS_IN_USE	6
#define STATUS_BUSY	7

/*
 * Exit status of a command that ends with @err: that of -EBUSY or -EAGAIN, which is reported, or 1.
 */
int refused_now(struct call *c, int err);

/* --- commands: 0, or an error that has been reported --------------------------------------- */

/* The exit status for errors found before the volume is touched. */
int before_info(struct call *c);
int before_put(struct call *c);
int before_mv(struct call *c);
int before_chmod(struct call *c);
int before_attr(struct call *c);
int before_chown(struct call *c);
int before_find(struct call *c);
int before_du(struct call *c);
int before_label(struct call *c);
int before_dump(struct call *c);
int before_guard(struct call *c);
int before_systems(struct call *c);
int before_bad(struct call *c);
int before_clone(struct call *c);

int cmd_info(struct call *c);
int cmd_df(struct call *c);
int cmd_slots(struct call *c);
int cmd_look(struct call *c);
int cmd_label(struct call *c);
int cmd_ls(struct call *c);
int cmd_cat(struct call *c);
int cmd_stat(struct call *c);
int cmd_get(struct call *c);
int cmd_put(struct call *c);
int cmd_mkdir(struct call *c);
int cmd_rm(struct call *c);
int cmd_mv(struct call *c);
int cmd_ln(struct call *c);
int cmd_chmod(struct call *c);
int cmd_chown(struct call *c);
int cmd_attr(struct call *c);
int cmd_find(struct call *c);
int cmd_du(struct call *c);
int cmd_dump(struct call *c);

#define SYSTEMS_TAKES	"VOLUME [fence SLOT|NAME|MACHINE], or --open VOLUME"
#define BAD_TAKES	"VOLUME [add|remove ADDRESS [SIZE]]"
#define GUARD_TAKES	"VOLUME... and either -- COMMAND... or --pid=PID"
/* These commands open the volume themselves, and return the exit status. */
int cmd_systems(struct call *c);
int cmd_top(struct call *c);
int cmd_tune(struct call *c);
int cmd_bad(struct call *c);
int cmd_guard(struct call *c);
int cmd_grow(struct call *c);
int cmd_snapshot(struct call *c);
int cmd_clone(struct call *c);
int cmd_relocate(struct call *c);
int cmd_image(struct call *c);

/* Commands on a node's zone; @volume is the name of the zone, or of the volume. See volume.h. */
#define CREATE_TAKES	"VOLUME --size=SIZE [-- OPTION OF mkfs.stargatefs...]"
#define RESIZE_TAKES	"VOLUME --size=SIZE"
#define CHECK_TAKES	"VOLUME [-- OPTION OF fsck.stargatefs...]"
int before_zone(struct call *c);
int before_volume(struct call *c);
int before_create(struct call *c);
int before_resize(struct call *c);
int before_check(struct call *c);
int before_vm_args(struct call *c);
int before_volume_snapshot(struct call *c);
int before_volume_clone(struct call *c);
int before_volume_rename(struct call *c);
int cmd_zone_create(struct call *c);
int cmd_zone_show(struct call *c);
int cmd_zone_extend(struct call *c);
int cmd_zone_destroy(struct call *c);
int cmd_volume_create(struct call *c);
int cmd_volume_list(struct call *c);
int cmd_volume_show(struct call *c);
int cmd_volume_resize(struct call *c);
int cmd_volume_rename(struct call *c);
int cmd_volume_delete(struct call *c);
int cmd_volume_snapshot(struct call *c);
int cmd_volume_clone(struct call *c);
int cmd_volume_check(struct call *c);
int cmd_volume_relocate(struct call *c);
int cmd_volume_activate(struct call *c);
int cmd_volume_qemu_args(struct call *c);
int cmd_volume_libvirt_xml(struct call *c);

/* --- shared by the commands ---------------------------------------------------------------- */

void show_lease(struct json *j, u64 ms);
void show_slot(struct json *j, unsigned int number, const struct sg_slot *slot);
void dump_inode_raw(struct call *c, const struct sg_inode *in);
int dump_dir(struct call *c, const struct sg_iref *ref);
int dump_bucket(struct call *c, u64 off);
int dump_table(struct call *c, const struct sg_iref *ref);
int dump_xattr(struct call *c, const struct sg_iref *ref);
const char *type_name(u32 mode);

#endif
