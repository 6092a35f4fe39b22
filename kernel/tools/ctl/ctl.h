/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the commands of stargatectl share. */
#ifndef SG_CTL_H
#define SG_CTL_H

#include <sys/stat.h>
#include "internal.h"
#include "tool.h"

#define CTL_PIECE (1u << 20) /* bytes of one copy step */
#define DEPTH_MAX	1024		/* of nested directories */

/**
 * struct call - one running command. @argv, @argc: its arguments after the volume.
 * @spent: steps in trees, see call_may_go_on(). @taken: copied bytes; @met: bits of inodes, see
 * bound.c.
 * @links: files with several names that have been copied, see links.c.
 * @top, @below: descriptor of the directory that get makes, or -1; the position in paths where its
 * name ends.
 * @clamped: put has already reported a time out of range.
 * @must_be_dir: put's path ends in a slash. @tar: for get and put: use an archive. @open: for
 * systems: list their open files. @export: for info: print lines for udev. @plain: for image: keep
 * names. @tests, @ntests: for find: the arguments after its path.
 * @all, @total, @human: for du: list files, too; print only the sum; print sizes with units.
 * @keep: for mv: replace nothing. @exact: for mv and ln: the last path is the new name, also if it
 * is a directory. @symbolic: for ln. @digest: for seal: keep a digest of the contents.
 * @volume: the path that was given. @tail: number of arguments in @argv that followed "--".
 * @watch: for systems and top: seconds between tables, or 0. @lease_ms: for tune: the new lease, if
 * @lease; @uuid_id: the new UUID, if @uuid.
 * @size: for grow, clone, volume create, resize and clone: the requested size, or 0. @align: volume
 * create, clone.
 * @reserve: for volume create and clone: memory after the volume, reserved for its growth.
 * @base_given: relocate and clone use @base. @dry: only try it. @label: for clone and tune: the
 * label, or NULL.
 * @pid, @machine, @pause_limit: for guard. @stall: for snapshot and clone: milliseconds, or 0.
 * @peers: for bells: the highest number of VMs, or 0.
 * @memory, @phys_bits, @read_only: properties of a VM that gets a volume.
 */
struct call {
	struct member m;
	const char *volume;
	int tail;
	u64 stall, watch, lease_ms, pid, pause_limit, size, reserve, base, align, memory;
	u64 phys_bits, peers;
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
	bool plain, keep, exact, symbolic, all, total, human, digest;
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
 * Counts a step down a tree of the volume: a directory, an index page, an entry. A correct tree has
 * fewer steps than a volume can have inodes. Returns false, after a message, if the tree has a
 * cycle (D10).
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
 * Records a directory of a tree, or a file with one name. Returns -EUCLEAN, after a message, if the
 * walk has met it before, because the copy would never end. Returns -ELOOP, after a message, if a
 * walk through a volume in use meets more of them than can exist.
 */
int tree_meet(struct call *c, const char *path, u64 ino);

/**
 * struct piece - an extent of a file that is not a hole. @sum: bytes of the file up to here.
 */
struct piece {
	u64 pos, end, sum;
};
/*
 * Finds the next extent at or after @p->end in a file of @size bytes. Returns 0 after the last one,
 * and a value below 0 after a message. All extents together are at most as large as the volume.
 */
int piece_next(struct call *c, const char *path, const struct sg_iref *ref, u64 size,
	       struct piece *p);

/* --- path.c -------------------------------------------------------------------------------- */

/*
 * Finds "/a/b", or "<N>" for an inode number. Follows symbolic links in the path, and the last one
 * if @follow. Reports errors.
 */
int path_find(struct sg_vol *vol, const char *path, bool follow, struct sg_iref *out,
	      struct sg_attr *attr);
/* Finds the directory that contains @path, and the last name of @path. */
int path_parent(struct sg_vol *vol, const char *path, struct sg_iref *dir, const char **name,
		u32 *len);
/* As path_find(), but without messages. */
int path_seek(struct sg_vol *vol, const char *path, bool follow, struct sg_iref *out,
	      struct sg_attr *attr);
int path_error(const char *path, int err);	/* reports err, and returns it */
int outside_error(const char *path);		/* the same for -errno */
int needs_recursion(const char *path);		/* returns -EISDIR, after a message */
const char *last_name(const char *path);	/* returns the name after the last slash */
/* Returns the path without the slashes at its end; the caller frees it. */
char *without_slashes(const char *path);

/**
 * struct listing - the sorted names of a directory. @text: the names, in one buffer, because there
 * may be millions. @missing: -EUCLEAN if the directory has more names, which are damaged and have
 * been reported.
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
/* Lists the directory @path. Reports errors. */
int list_dir(struct sg_vol *vol, const struct sg_iref *dir, const char *path, struct listing *out);
void list_free(struct listing *l);

/* --- links.c ------------------------------------------------------------------------------- */

/**
 * struct link_seen - a copied file that has other names. @dev, @ino: its identity. @other: its
 * inode number in the volume (put). @path: its name below the directory that get makes; @made:
 * identity of the file there.
 */
struct link_seen {
	u64 dev, ino, other;
	char *path;
	struct stat made;
};
/*
 * Values of @dev for inodes of the volume: directories, other inodes, and inodes that this call has
 * moved.
 */
enum { LINK_DIR, LINK_FILE, LINK_MADE };
const struct link_seen *links_find(void *const *links, u64 dev, u64 ino);
int links_add(void **links, const struct link_seen *what);
void links_free(void **links);

/* --- files.c ------------------------------------------------------------------------------- */

/* returns -EOPNOTSUPP, after a message, for a metadata image */
int has_contents(struct call *c);

/* --- walk.c -------------------------------------------------------------------------------- */

/**
 * struct visit - a visited name of a tree. @path: the complete path; @name: its last part. @depth:
 * levels below the start of the walk. @err: the error, already reported, if the inode cannot be
 * read; otherwise the inode is @ref, with @attr.
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
 * struct walk - the functions of a walk through a tree. @see: called for each name, for a directory
 * before the names in it; @leave: called after these. Either may be NULL. They return 0, or an
 * error that they have reported; the walk then continues. @depth: level of the deepest names to
 * visit.
 */
struct walk {
	int (*see)(struct call *c, const struct visit *v, void *ctx);
	int (*leave)(struct call *c, const struct visit *v, void *ctx);
	void *ctx;
	unsigned int depth;
};
/*
 * Walks through a tree without following symbolic links. Returns 0, or the first error, which has
 * been reported.
 */
int walk_tree(struct call *c, const char *path, const struct sg_iref *ref, const struct walk *w);
/*
 * Runs a command that lists names which a walk from its argument finds. With --json, it prints them
 * as the array @title.
 */
int walk_list(struct call *c, const char *title, const struct walk *w);

/* --- rename.c ------------------------------------------------------------------------------ */

/*
 * Returns -EPERM, after a message, if the inode's flags forbid all changes except those of the
 * flags.
 */
int attr_allows(const char *path, const struct sg_attr *attr);

/* --- attr.c -------------------------------------------------------------------------------- */

/* Reads a number, or the name of a user or group of this machine. */
bool owner_read(const char *text, bool group, u32 *id);

/* --- place.c ------------------------------------------------------------------------------- */

/**
 * struct place - a name in the volume. @taken: the name exists, for inode @old, with @attr.
 */
struct place {
	struct sg_iref dir, old;
	const char *name;
	u32 len;
	bool taken;
	struct sg_attr attr;
};
/*
 * Looks up a name for a new inode of @mode. Reports why the name cannot be used; @from is the file
 * in the message.
 */
int place_look(struct call *c, const struct sg_iref *dir, const char *name, u32 mode,
	       const char *from, struct place *p);
/* Makes the name refer to @ref; the inode to which it referred before loses a name. */
int place_give(struct call *c, const struct place *p, const struct sg_iref *ref);
/* Keeps owner, mode, flags and extended attributes of a file whose content is replaced. */
int place_inherit(struct call *c, const struct place *p, struct sg_new *new);

/**
 * struct xattrs - extended attributes for a new inode, in the form of struct sg_new.
 */
struct xattrs {
	u64 data[SG_XATTR_TOTAL_MAX / 8];
	u32 len;
};
/* Returns -E2BIG if there are more than an inode can have. */
int xattrs_add(struct xattrs *x, unsigned int space, const char *name, u32 name_len,
	       const void *value, u32 value_len);

/* --- guarded.c ----------------------------------------------------------------------------- */

/**
 * struct guarded - a volume of a guarded machine. @lost: the volume was truncated during a read,
 * which has been reported. @beat: the last heartbeats.
 * @seen: incarnations of the machine's systems at the last read; @known: their incarnations at the
 * last read after which the machine still ran.
 */
struct guarded {
	struct target target;
	struct sg_vol vol;
	bool lost;
	u64 beat[SG_SLOTS];
	u32 seen[SG_SLOTS], known[SG_SLOTS];
};
/* Opens the volume. Reports errors, and a missing volume, which is not an error. */
int guarded_open(struct guarded *v, const char *path);
/*
 * Shows all systems that the machine runs. *any: a system of the machine uses the volume; *moved:
 * its heartbeat has also moved.
 */
void guarded_look(struct guarded *v, const u8 machine[16], bool *any, bool *moved);
/* Notes that the machine still ran after the read. */
void guarded_confirm(struct guarded *v);
/* Fences the systems of the machine after its end. */
void guarded_fence(struct guarded *v, const u8 machine[16]);

/* --- relocate.c ---------------------------------------------------------------------------- */

/**
 * struct relocation - a volume whose addresses must be adapted to its present base. @base: this
 * base, if @base_given; otherwise the tool detects it. @dry: work in a private copy. @force: treat
 * all other systems as dead.
 */
struct relocation {
	const char *path;
	u64 base;
	bool base_given, dry, force;
};
/* Relocates the volume. Prints only errors. */
int relocate_volume(const struct relocation *r, struct sg_relocate_result *out);

/* --- holders.c ----------------------------------------------------------------------------- */

/**
 * struct holder - a process that has .stargate/region of a volume mounted here open or mapped.
 * @mode: "rw", "ro", or "revoked". @machine: the machine for which it maps region, if @known.
 */
struct holder {
	u64 pid;
	char mode[8], command[32];
	bool known;
	u8 machine[16];
};
#define HOLDERS	128
/* Returns the number of holders without this process; 0 if the volume is not mounted here. */
unsigned int read_holders(const char *path, struct holder *to, unsigned int room);
/*
 * Sets @dir to the module's folder for the mount of the device @path, or of the region @path. Does
 * not use the volume's own names, because a member can store those of another volume, and a
 * snapshot has those of its source.
 */
bool mounted_here(const char *path, char *dir, size_t room);
int own_slot(const char *dir);	/* slot of the mount here, or -1 */
/*
 * Returns -ENXIO if no process here can stop the system, -EINVAL for this system itself, -ESTALE if
 * the system has left.
 */
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
 * Returns the exit status of a command that ends with @err: that of -EBUSY or -EAGAIN, after a
 * message, or 1.
 */
int refused_now(struct call *c, int err);

/* --- commands: they return 0, or an error that they have reported -------------------------- */

/* These return the exit status for errors found before the volume is opened. */
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
int cmd_seal(struct call *c);
int cmd_unseal(struct call *c);
int cmd_verify(struct call *c);
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
int cmd_bells(struct call *c);
int cmd_grow(struct call *c);
int cmd_snapshot(struct call *c);
int cmd_clone(struct call *c);
int cmd_relocate(struct call *c);
int cmd_image(struct call *c);

/* Commands on a node's zone. @volume is the name of a zone or of a volume. See volume.h. */
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

/* --- functions for several commands -------------------------------------------------------- */

void show_lease(struct json *j, u64 ms);
void show_slot(struct json *j, unsigned int number, const struct sg_slot *slot);
void dump_inode_raw(struct call *c, const struct sg_inode *in);
int dump_dir(struct call *c, const struct sg_iref *ref);
int dump_bucket(struct call *c, u64 off);
int dump_table(struct call *c, const struct sg_iref *ref);
int dump_xattr(struct call *c, const struct sg_iref *ref);
const char *type_name(u32 mode);

#endif
