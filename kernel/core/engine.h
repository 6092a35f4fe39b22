/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine: everything that interprets or changes the bytes of a volume (D4). The same files are
 * compiled into the module, the tools and the tests. docs/engine.md tells how the parts fit.
 *
 * Conventions: functions return 0 or a negative errno. An inode is named by a struct sg_iref, taken
 * once with sg_iref(). Every function takes the shared locks that it needs by itself; callers
 * inside one system need no further lock for the volume's sake (a kernel holds its VFS locks).
 * All bytes of the volume are hostile (D10): -EUCLEAN reports damage, which has been logged.
 */
#ifndef SG_ENGINE_H
#define SG_ENGINE_H

#include <sg_os.h>
#include "format.h"

#ifndef EUCLEAN
#define EUCLEAN 117
#endif

/* --- volume -------------------------------------------------------------------------------- */

struct sg_identity {
	u8 machine[16];
	u8 boot[16];
	char name[64];
	u64 pid;
	u64 beat_ns;
};

struct sg_counters {		/* statistics; not exact across CPUs on purpose */
	u64 commits, commit_words, aborts;
	u64 pages_allocated, pages_freed;
	u64 lock_waits, replays;
};

struct sg_odd {			/* a change counter that was left odd */
	u64 off, seq;
};

struct sg_ledger;		/* the slot's debts, mirrored in the system's own memory */
struct sg_tx;

/**
 * struct sg_vol - a volume that this system uses. In the system's own memory.
 * @base: linear, write-back mapping of the whole volume.
 * @sb: checked copy of the superblock; the volume's is not looked at again.
 * @slot: our entry in the mount table, or -1 (read only, not joined).
 */
struct sg_vol {
	u8 *base;
	u64 size;
	struct sg_super sb;
	int slot;
	u32 incarnation;
	const u64 *state;	/* our slot's state word, and what stands there while we live */
	u64 alive;
	bool read_only;
	bool alone;		/* nobody changes the volume meanwhile: nobody is waited for */
	bool shut_down;		/* -EIO for every change: declared dead, or errors= says so */
	void *owner;		/* for sg_log() */
	/* called once per damage found; may set read_only (errors=). NULL: only logged */
	void (*on_damage)(struct sg_vol *vol, u64 ino, u64 off);
	/*
	 * Before pages taken out of use may be used again: make sure that no translation, mapping
	 * or walk of this system still reaches them (D7). NULL: there are none.
	 */
	void (*quiesce)(struct sg_vol *vol);
	struct sg_ledger *ledger;
	struct sg_tx *tx;	/* one per transaction area */
	struct sg_counters stat;
	u64 damage_seen[16];	/* offsets reported already */
	unsigned int damage_next;
	struct sg_spin spin;	/* guards @odd, and the look for strayed locks (lock.c) */
	struct sg_odd odd[16];
	u64 odd_judged;		/* so many were put there, in turn */
	u64 *held;		/* locks that we hold, counted by hash; as long as we have a slot */
	u64 chunk_cursor[16];	/* where this system looked last, by sg_cpu() */
	char why[200];		/* reason of the last refusal by sg_open() or sg_join() */
};

struct sg_format_opts {
	u64 phys;		/* base address, aligned to SG_VOLUME_ALIGN */
	u64 params;
	u64 chunk_cap;		/* 0: default */
	u32 areas;		/* 0: default by size */
	const char *label;	/* or NULL */
	const u8 *uuid;		/* or NULL: random */
	u32 root_mode, root_uid, root_gid; /* root_mode 0: 0755 */
};

struct sg_probe {		/* what sg_probe() found */
	bool stargate;		/* has our magic, primary or backup */
	bool valid;		/* checksum and geometry hold */
	bool from_backup;
	u64 whole;		/* not valid because cut short: bytes that it had, or 0 */
	struct sg_super sb;
	unsigned int live;	/* slots that are not free */
};

/* What sg_format() would make: its superblock, without checksum. -EINVAL with why. */
int sg_format_plan(u64 size, const struct sg_format_opts *opts, struct sg_super *sb, char why[200]);
/* Makes a new file system in @size bytes at @base. Overwrites without asking. */
int sg_format(void *base, u64 size, const struct sg_format_opts *opts, char why[200]);
/* Looks, changes nothing. 0 also when there is no file system. */
int sg_probe(const void *base, u64 size, struct sg_probe *out);
/*
 * The same, and where no superblock is where one should be it looks for the backup of a volume that
 * is smaller than what it lies on. Returns the size that was probed.
 */
u64 sg_search(const void *base, u64 size, struct sg_probe *out);
/*
 * Fills *vol for the volume at @base, @size: superblock checked (backup used when the primary is
 * damaged, with a warning), nothing changed. -EINVAL/-EUCLEAN/... with vol->why.
 */
int sg_open(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner);
/*
 * Enters the mount table and recovers what dead systems left. -EBUSY with vol->why naming the
 * holder when another system is live (until systems may share, see docs/limitations.md).
 * @wait_ms: how long a silent slot is watched before it counts as dead. @force: take all others
 * for dead.
 */
int sg_join(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms, bool force);
void sg_beat(struct sg_vol *vol);	/* heartbeat; call every id->beat_ns */
/* Pays all debts and frees the slot. The caller has closed everything. */
void sg_leave(struct sg_vol *vol);
/* Ends the use without a clean leave (the slot stays, as after a crash); frees own memory. */
void sg_abandon(struct sg_vol *vol);
/* True when some slot needs recovery: a read-only open refuses or warns. */
bool sg_needs_recovery(const struct sg_vol *vol);
int sg_slot_read(const struct sg_vol *vol, unsigned int slot, struct sg_slot *out);
/* Writes sb to both copies, crash-safe: label, params, uuid, phys. Nobody may be joined but us. */
int sg_super_write(struct sg_vol *vol, const struct sg_super *sb);

struct sg_statfs {
	u64 pages, free_pages, inodes, used_inodes;
};
/* Exact. Pays debts first, so that freed space counts as free. */
int sg_statfs(struct sg_vol *vol, struct sg_statfs *out);
/* Pages of the longest free piece. Looks at every chunk: not for those who ask often. */
u64 sg_largest_free(const struct sg_vol *vol);
/* Pays up to @budget debts; returns how many remain, or -errno. */
int sg_reclaim(struct sg_vol *vol, unsigned int budget);

/* --- inodes -------------------------------------------------------------------------------- */

struct sg_iref {
	u64 ino;
	u64 off;		/* of its struct sg_inode in the volume */
};

struct sg_attr {
	u64 ino, size, blocks, entries, special, seq;
	u32 mode, nlink, uid, gid, generation, flags;
	s64 mtime, ctime, atime, btime;
	bool has_xattr;
};

/* Fields for sg_setattr(). */
#define SG_SET_MODE	(1u << 0)
#define SG_SET_UID	(1u << 1)
#define SG_SET_GID	(1u << 2)
#define SG_SET_MTIME	(1u << 3)
#define SG_SET_CTIME	(1u << 4)
#define SG_SET_ATIME	(1u << 5)
#define SG_SET_FLAGS	(1u << 6)
#define SG_SET_BTIME	(1u << 7)
#define SG_SET_GENERATION (1u << 8)

int sg_iref(const struct sg_vol *vol, u64 ino, struct sg_iref *ref); /* -ESTALE: no such record */
/* A consistent snapshot. -ESTALE when the record is free. */
int sg_getattr(struct sg_vol *vol, const struct sg_iref *ref, struct sg_attr *attr);
u64 sg_seq(const struct sg_vol *vol, const struct sg_iref *ref); /* change counter, even */
int sg_setattr(struct sg_vol *vol, const struct sg_iref *ref, unsigned int set,
	       const struct sg_attr *attr);
/* Times only, without the journal: each is one word. For the hot paths. */
int sg_touch(struct sg_vol *vol, const struct sg_iref *ref, unsigned int set,
	     s64 mtime, s64 ctime, s64 atime);
/* The last user of an inode with no links is gone: free it. No-op when it has links. */
int sg_evict(struct sg_vol *vol, const struct sg_iref *ref);

/* --- names --------------------------------------------------------------------------------- */

struct sg_new {			/* what to create */
	u32 mode, uid, gid;
	u64 rdev;		/* device nodes */
	u32 flags;		/* SG_FL_* inherited */
	const char *target;	/* symlink */
	u32 target_len;
	s64 now;
	/* initial xattrs (inherited ACLs, labels): a payload of struct sg_xattr_entry, or NULL */
	const void *xattrs;
	u32 xattrs_len;
};

#define SG_RENAME_NOREPLACE	1u	/* as RENAME_*; WHITEOUT comes with @whiteout */
#define SG_RENAME_EXCHANGE	2u
#define SG_RENAME_WHITEOUT	4u

/* @type (as S_IFMT >> 12) may be NULL. */
int sg_lookup(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
	      struct sg_iref *out, unsigned int *type);
int sg_create(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
	      const struct sg_new *new, struct sg_iref *out);
/* An inode without a name (O_TMPFILE): owed to be freed until sg_link() gives it one. */
int sg_tmpfile(struct sg_vol *vol, const struct sg_new *new, struct sg_iref *out);
int sg_link(struct sg_vol *vol, const struct sg_iref *inode, const struct sg_iref *dir,
	    const char *name, u32 len, s64 now);
/* Removes the name; the inode itself stays, owed, until sg_evict(). */
int sg_unlink(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len, s64 now);
int sg_rmdir(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len, s64 now);
int sg_rename(struct sg_vol *vol, const struct sg_iref *odir, const char *oname, u32 olen,
	      const struct sg_iref *ndir, const char *nname, u32 nlen, unsigned int flags,
	      const struct sg_new *whiteout, s64 now);
/*
 * Calls @emit for each name with key >= *cookie in key order; *cookie follows. @emit returns false
 * to stop before that name. "." and ".." are the caller's. Cookies: 0 begins; each name's own is
 * its key + 2 (so that 0 and 1 are free for the caller); at the end S64_MAX.
 */
typedef bool (*sg_emit)(void *ctx, const char *name, u32 len, u64 ino, unsigned int type,
			u64 cookie);
int sg_readdir(struct sg_vol *vol, const struct sg_iref *dir, u64 *cookie, sg_emit emit, void *ctx);
/* Copies up to @len bytes of the target, no terminator; returns its length. */
int sg_readlink(struct sg_vol *vol, const struct sg_iref *ref, char *buf, u32 len);

/* --- extended attributes ------------------------------------------------------------------- */

#define SG_XATTR_CREATE		1u
#define SG_XATTR_REPLACE	2u
/* @space: SG_XATTR_*; @name without its prefix (empty for ACLs). buf NULL: size only. */
int sg_xattr_get(struct sg_vol *vol, const struct sg_iref *ref, unsigned int space,
		 const char *name, u32 name_len, void *buf, u32 len);
/* value NULL removes. ctime follows @now. */
int sg_xattr_set(struct sg_vol *vol, const struct sg_iref *ref, unsigned int space,
		 const char *name, u32 name_len, const void *value, u32 len, unsigned int flags,
		 s64 now);
/* As sg_xattr_set() for an ACL that also changes the mode, in one transaction. */
int sg_xattr_set_mode(struct sg_vol *vol, const struct sg_iref *ref, unsigned int space,
		      const void *value, u32 len, u32 mode, s64 now);
typedef int (*sg_xattr_emit)(void *ctx, unsigned int space, const char *name, u32 name_len,
			     const void *value, u32 value_len);
int sg_xattr_list(struct sg_vol *vol, const struct sg_iref *ref, sg_xattr_emit emit, void *ctx);

/* --- data ---------------------------------------------------------------------------------- */

/**
 * struct sg_run - pages of a file that follow each other in the volume, or a hole.
 * @off: volume offset of the first page, or 0 for a hole.
 * @pages: how many, at least 1, up to what was asked.
 * @level: 1, or 2/3 when all of it lies in one large leaf.
 */
struct sg_run {
	u64 off;
	u64 pages;
	unsigned int level;
};

/* The walk (D5): lock-free, checked. Wants page numbers; beyond the table: a hole. */
int sg_walk(const struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want,
	    struct sg_run *run);
/* The root word, for splicing: 0, or height (1..4) and physical address of the root table. */
u64 sg_root(const struct sg_vol *vol, const struct sg_iref *ref);

/**
 * struct sg_write - a piece of a write, between sg_write_begin() and sg_write_end().
 * @off: where the bytes go (volume offset). @len: how many may be stored there.
 * @fresh: pages that nobody can see yet; they become the file's at sg_write_end().
 */
struct sg_write {
	u64 pos, off, len;
	bool fresh;
	/* private to the engine */
	struct sg_tx *tx;
	u64 first, pages;
	u64 size;
	bool locked;
};

#define SG_WRITE_KEEP_SIZE	1u

/*
 * Prepares to store bytes at @pos: in place, or into fresh pages (everything in them that is
 * outside [pos, pos+len) is zeroed). A piece may be shorter than @len; the caller loops. Between
 * begin and end the caller must not sleep on, or fault in, anything that needs this volume: copy
 * with faults disabled. Stored bytes are made durable with sg_wb() before sg_write_end().
 * sg_write_end() publishes min(@done, len) bytes, extends the size if need be and sets mtime and
 * ctime to @now (when nonzero); done == 0 undoes.
 */
int sg_write_begin(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len,
		   unsigned int flags, struct sg_write *w);
int sg_write_end(struct sg_vol *vol, const struct sg_iref *ref, struct sg_write *w, u64 done,
		 s64 now);

/* Copies of any length, by walk; for tools and tests. Return bytes or -errno; holes read as 0. */
s64 sg_read(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, void *buf, u64 len);
s64 sg_write(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, const void *buf, u64 len,
	     s64 now);

/*
 * Allocates zeroed pages for holes of [first, first + pages). 0 or -ENOSPC: before anything is
 * taken when the holes alone are more than is free, else what was allocated stays. Does not change
 * the size: that is sg_resize()'s or the caller's.
 */
int sg_allocate(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages);
/* Sets the size; cuts pages off behind it, zeroes the rest of the last page. */
int sg_resize(struct sg_vol *vol, const struct sg_iref *ref, u64 size, s64 now);
/* Makes [pos, pos+len) read as zeroes; whole pages are freed. */
int sg_punch(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now);
/* Page-aligned: removes the range and closes up / opens a hole and moves the rest up. */
int sg_collapse(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now);
int sg_insert(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, u64 len, s64 now);
/* SEEK_DATA / SEEK_HOLE: position >= pos, or -ENXIO. */
s64 sg_seek(struct sg_vol *vol, const struct sg_iref *ref, u64 pos, bool hole);
/* Starts write-back of all lines of the file's pages in [first, first+pages), then fences. */
int sg_flush(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages);

/* --- check and repair ---------------------------------------------------------------------- */

enum sg_check_mode { SG_CHECK_ONLY, SG_CHECK_PREEN, SG_CHECK_REPAIR };

struct sg_check_opts {
	enum sg_check_mode mode;
	/* Repairing: who we are in the mount table meanwhile, so that nobody else joins. */
	const struct sg_identity *id;
	unsigned int wait_ms;	/* as sg_join() */
	bool force;
	void *owner;		/* for sg_log() */
	/*
	 * The volume has been joined to repair it, or (NULL) is about to be left. Whoever needs
	 * longer than others wait calls sg_beat() meanwhile; so does sg_check(), now and then.
	 */
	void (*holding)(void *ctx, struct sg_vol *vol);
	/* a finding, in one line; @fixed: has been repaired */
	void (*report)(void *ctx, const char *what, u64 ino, u64 off, bool fixed);
	void (*progress)(void *ctx, const char *phase, u64 done, u64 total);
	void *ctx;
};
struct sg_check_result {
	u64 files, directories, others, pages, pages_used;
	u64 found, fixed;	/* fixed == found: a last pass has found nothing */
	u64 beyond;		/* of what was found and is left: nothing can repair it */
	bool no_space;		/* something is left because the volume is full */
	/* inodes that could not be kept, as far as the volume tells; of these, of known type: */
	u64 lost, lost_files, lost_dirs;
	u64 adopted;		/* that have got a name in lost+found */
	bool unclean;		/* a system had not left: recovery was, or will be, needed */
	bool replayed;		/* it had committed something that was not in place yet */
	char why[200];		/* reason of an error */
};
/*
 * Checks a volume that nobody uses. SG_CHECK_ONLY stores nothing at all, so that @base may be
 * mapped read-only; the volume is checked as recovery would leave it, and needing recovery is no
 * finding. The other modes begin with the same and store something only when that found a reason
 * to;
 * -EBUSY with res->why when another system is live. SG_CHECK_PREEN recovers and repairs what
 * cannot lose anything; what else it finds stays (found > fixed). Interrupted anywhere, a repair
 * is continued by the next one.
 */
int sg_check(void *base, u64 size, const struct sg_check_opts *opts, struct sg_check_result *res);

#endif
