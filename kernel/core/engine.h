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
	char version[16];	/* or empty */
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
 * struct sg_still - how a system stands still, while somebody copies the volume (freeze.c)
 * @closed: no transaction begins.
 * @word: sg_hot.freeze that we stand still for, or 0; @answered: the last one that we did.
 * @since: when that began. @outside: sg_vol.stand has been told.
 * @spent: time spent so lately (ns), @counted: as of then.
 */
struct sg_still {
	u64 closed, word, answered, since, spent, counted;
	bool outside;
};

/**
 * struct sg_freezing - what we know of the others, while they stand still for us.
 * @phase: 0: they do not; 1: somebody of ours sees to it; 2: they do.
 * @word: sg_hot.freeze. @until: when that is over.
 * @seen: state words of all slots.
 */
struct sg_freezing {
	u64 phase, word, until;
	u64 seen[SG_SLOTS];
};

/**
 * struct sg_vol - a volume that this system uses. In the system's own memory.
 * @base: linear, write-back mapping of the whole volume, and of what it can grow into.
 * @size: what nothing in it reaches beyond. While it grows that is more than @sb says.
 * @room: bytes of memory at @base.
 * @sb: checked copy of the superblock; the volume's is not looked at again. Its size follows.
 * @slot: our entry in the mount table, or -1 (read only, not joined).
 */
struct sg_vol {
	u8 *base;
	u64 size;
	u64 room;
	struct sg_super sb;
	int slot;
	u32 incarnation;
	const u64 *state;	/* our slot's state word, and what stands there while we live */
	u64 alive;
	struct sg_identity id;	/* what we have said there */
	u64 beats;		/* heartbeats of ours, as the slot counts them (slot.c) */
	bool read_only;
	bool alone;		/* nobody changes the volume meanwhile: nobody is waited for */
	bool steady;		/* its size is what it was: the checker's */
	u64 shut_down;		/* -EIO for every change: declared dead, or errors= says so */
	/*
	 * Somebody else calls sg_tend() for us all the time. Otherwise whoever waits for an epoch
	 * tends, too: programs with one thread.
	 */
	bool tended;
	/* It is about to leave: no lock is waited for any longer than some seconds (-EBUSY). */
	bool hurry;
	/* Nor by one who joins, beyond that time (sg_ticks()); 0: it does not join. */
	u64 join_until;
	u64 held_up;		/* word of the lock that it waited for then, or 0 */
	unsigned int join_wait_ms;	/* how long joining waits for locks; 0: JOIN_WAIT_MS */
	u64 settler, settle_stop;	/* the thread in sg_settle(), or 0; it is to end */
	unsigned int space_wait_ms;	/* for space that is owed (hunger.c); 0: SPACE_WAIT_MS */
	bool owed_on_lists;	/* for tests: the ledger owes no inodes, lists do (owed.c) */
	void *owner;		/* for sg_log() */
	/* called once per damage found; may set read_only (errors=). NULL: only logged */
	void (*on_damage)(struct sg_vol *vol, u64 ino, u64 off);
	/*
	 * Before pages taken out of use may be used again: make sure that no translation or mapping
	 * of this system still reaches them (D7); walks have been waited for. NULL: there are none.
	 */
	void (*quiesce)(struct sg_vol *vol);
	/* Does this system use inode @ino, without links, still? Must not sleep. NULL: no. */
	bool (*in_use)(struct sg_vol *vol, u64 ino, u32 generation);
	/*
	 * The volume is to grow beyond @room: how many bytes of memory are there now, at the same
	 * address? From any thread; may sleep. NULL: as many as before.
	 */
	u64 (*reach)(struct sg_vol *vol);
	/* The list of bad memory has changed: mappings and windows may show what is in it now. */
	void (*on_bad)(struct sg_vol *vol);
	u32 bads_seen;		/* changes of that list that we know of (bad.c) */
	bool hot_lost;		/* the page with that list is bad itself */
	/* what we have found ourselves, whatever the list says by now; 0: none. nown only grows */
	u64 nown, own_bad[SG_BAD_MAX];
	const u64 *bads;	/* 0 there: none is known of; the list's word, or nown (bad.c) */
	u64 stopped;		/* for our slot's state word, if that may not be looked at */
	/* We have been declared dead: once, from anywhere; must not sleep. NULL: only logged. */
	void (*on_death)(struct sg_vol *vol);
	/*
	 * @on: nobody here stores anything into the volume from now on, but the engine by itself;
	 * who is in the midst of something has ended it. May sleep. Not @on: they may go on. NULL:
	 * there is nobody.
	 */
	int (*stand)(struct sg_vol *vol, bool on);
	bool stood;		/* somebody else calls sg_stand() for us all the time */
	/*
	 * The calling thread waits for another system. Does it hold meanwhile what others here wait
	 * for? Then its wait ends: -EINTR. Asked at each look; must not sleep. NULL: no.
	 */
	bool (*gives_way)(const struct sg_vol *vol);
	struct sg_still still;
	struct sg_freezing freezing;
	/* Another system is to look at its bell at once: an interrupt. NULL: it looks anyway. */
	void (*ring)(struct sg_vol *vol, unsigned int slot);
	struct sg_sems *sems;	/* who of ours has semaphores, or waits for them (sem_wait.c) */
	struct sg_watch *watch;	/* what we have seen of the others (death.c) */
	struct sg_ack *ack;	/* how far we are with the epoch (epoch.c) */
#define SG_OPENING	16
	struct sg_spin opening[SG_OPENING]; /* setting and taking back of openers' bits (opens.c) */
	struct sg_ledger *ledger;
	struct sg_nameless *nameless;	/* what we use, and owe on lists (nameless.c) */
	/* how far looks along the lists of owed inodes have come: behind a record; one at a time */
	struct sg_owed_at {
		u64 busy, ino;
		unsigned int slot, area;
	} owed_at, owed_left_at, opens_at;
	struct sg_tx *tx;	/* one per transaction area */
	struct sg_counters stat;
	u64 damage_seen[16];	/* offsets reported already */
	unsigned int damage_next;
	/* guards @odd, the look for strayed locks (lock.c), our arrivals at barriers */
	struct sg_spin spin;
	struct sg_odd odd[16];
	u64 odd_next;		/* where the next one is put, in turn */
	u64 odd_judged, odd_last;	/* so many of late, and when the last one was */
	u64 stuck;		/* threads of ours that have waited for a lock for long (lock.c) */
	u64 *held;		/* locks that we hold, counted by hash; as long as we have a slot */
	u64 chunk_cursor[16];	/* where this system looked last, by sg_cpu() */
	u64 hints_left;		/* hints of the chunks below may be missing (space.c) */
	char why[200];		/* reason of the last refusal by sg_open() or sg_join() */
};

#define SG_MAX_FACTOR	16	/* so many times as large a volume can become by default */

struct sg_format_opts {
	u64 phys;		/* base address, aligned to SG_VOLUME_ALIGN */
	u64 params;
	u64 chunk_cap;		/* 0: SG_MAX_FACTOR times what it has */
	u64 lease_ms;		/* see sg_set_lease() */
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
/* The same read-only, for who only looks: also a metadata image, which nobody else can use. */
int sg_open_to_look(struct sg_vol *vol, void *base, u64 size, void *owner);
static inline bool sg_is_image(const struct sg_vol *vol)
{
	return vol->sb.incompat & SG_INCOMPAT_IMAGE;
}
/*
 * Enters the mount table, beside all who are there, and recovers those who are known to be dead.
 * -EBUSY with vol->why when no slot is free or somebody needs the volume for himself.
 * @wait_ms: how long a slot of this machine's last boot, or of one in it, is watched before it
 *	counts as dead.
 * @force: take all others for dead.
 */
int sg_join(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms, bool force);
/*
 * As sg_join(), but for who needs the volume for himself: all silent slots are watched for so
 * long, and then count as dead; -EBUSY with vol->why naming one that lives. Others cannot join
 * until we leave.
 */
int sg_join_alone(struct sg_vol *vol, const struct sg_identity *id, unsigned int wait_ms,
		  bool force);
/*
 * What nobody waits for: beats, watches others, recovers the dead, acknowledges epochs. Takes no
 * shared lock. Call it every SG_TEND_MS, or after the shorter time (ms) that it returns. -EIO: we
 * have been declared dead.
 */
int sg_tend(struct sg_vol *vol);
#define SG_TEND_MS	50
/* After a fence for silence, the pages that the fenced system may have mapped are not given out. */
#define SG_LAPSE_MS	10000
/*
 * The same in two halves, for two threads: the second waits until nobody here looks at pages that
 * others have freed, and the heart must not stand still meanwhile.
 */
int sg_watch(struct sg_vol *vol);
int sg_acknowledge(struct sg_vol *vol);
/* What can wait longer, and for locks: pays, takes over what the dead owed, mends. Every second. */
void sg_settle(struct sg_vol *vol);
/* On: the thread in sg_settle() ends it soon, whatever it waits for, and no other one begins. */
void sg_settle_stop(struct sg_vol *vol, bool on);
void sg_beat(struct sg_vol *vol);	/* the heartbeat alone */
/* Declares a system dead: the caller knows that it stores nothing more. -ESTALE: not that one. */
int sg_fence_slot(struct sg_vol *vol, unsigned int slot, u32 incarnation);
/* The same for a system that nothing has stopped: it may still run for a while. */
int sg_fence_lapsed(struct sg_vol *vol, unsigned int slot, u32 incarnation);
/* machine.c: for who sees machines from outside. Is this number one's own? */
bool sg_machine_known(const u8 machine[16]);
/* A system of that machine, which lives and has said who it is. */
bool sg_slot_of_machine(const struct sg_slot *slot, const u8 machine[16]);
/* The machine is there: its systems may be paused, but are not dead. Every 500 ms. */
void sg_stand_by(struct sg_vol *vol, const u8 machine[16]);
void sg_stand_by_slot(struct sg_vol *vol, unsigned int slot, const u8 machine[16]);
/* Nothing of the machine stores any more: all its systems but ourselves are dead. How many. */
unsigned int sg_fence_machine(struct sg_vol *vol, const u8 machine[16]);
/*
 * From now on a system counts as dead when it is silent for so long and nobody guards it; 0: never.
 * One word, which everybody reads at each look: it may change at any time, whoever is there.
 */
void sg_set_lease(struct sg_vol *vol, u64 ms);
u64 sg_lease(const struct sg_vol *vol);
#define SG_SUSPECT_MS	2000	/* silence that is worth a word; no lease is shorter */
/* Tries to end the current epoch and waits up to @wait_ms for its debts to become payable. */
bool sg_epoch_wait(struct sg_vol *vol, unsigned int wait_ms);
/* Pays all debts and frees the slot. The caller has closed everything. */
void sg_leave(struct sg_vol *vol);
/* Ends the use without a clean leave (the slot stays, as after a crash); frees own memory. */
void sg_abandon(struct sg_vol *vol);
/* True when some slot needs recovery: a read-only open refuses or warns. */
bool sg_needs_recovery(const struct sg_vol *vol);
/* -EIO: bad memory. It looks free then, for those who look at all of them. */
int sg_slot_read(const struct sg_vol *vol, unsigned int slot, struct sg_slot *out);
/**
 * struct sg_holding - what is a slot's, as somebody sees it who only looks on.
 * @open: inodes that it has open, or that a dead owner of the slot had.
 * @owes: pages in its ledger, at least.
 * @held_up: pages in all ledgers, at least, that it has yet to let go of: it lives, and has not
 * acknowledged what the others wait for.
 */
struct sg_holding {
	u64 open, owes, held_up;
};
/* Looks through all inodes. Of a volume in use: about right. */
void sg_holdings(const struct sg_vol *vol, struct sg_holding out[SG_SLOTS]);
/**
 * struct sg_opened - an inode that somebody has open, or had when it died.
 * @slots: a bit for each of theirs. @mode: type and permissions. @links: 0: it has been removed.
 */
struct sg_opened {
	u64 ino, slots, size;
	u32 mode, links;
};
/* Each of them, as somebody sees it who only looks on, until @each returns false. */
void sg_opened(const struct sg_vol *vol, bool (*each)(void *ctx, const struct sg_opened *o),
	       void *ctx);
/* Writes sb to both copies, crash-safe: label, params, uuid, phys. Nobody may be joined but us. */
int sg_super_write(struct sg_vol *vol, const struct sg_super *sb);
/*
 * What was copied from another volume becomes one of its own: with a UUID that nobody has, that
 * label, and made now. Nothing else in a volume depends on its UUID. Joined alone, or -EBUSY.
 */
int sg_renew(struct sg_vol *vol, const char *label, char why[200]);
/* The same volume gets another UUID, another label; NULL: as it is. Joined alone, or -EBUSY. */
int sg_relabel(struct sg_vol *vol, const u8 *uuid, const char *label, char why[200]);
void sg_make_uuid(u8 uuid[16]);		/* a random one */

/*
 * Makes the volume larger, while whoever lives goes on using it: up to the memory that all of them
 * have behind it. @size is rounded down to SG_VOLUME_ALIGN; 0: as large as possible. All who live
 * have @wait_ms to answer (0: SG_GROW_WAIT_MS). Done, or nothing is changed and why says why, with
 * the largest size that is possible: -EINVAL (smaller), -ENOSPC (no room), -EBUSY (one of the
 * others cannot), -EAGAIN (one does not answer), -EROFS, -EIO. Interrupted anywhere, it is done or
 * not begun.
 */
int sg_grow(struct sg_vol *vol, u64 size, unsigned int wait_ms, char why[200]);
#define SG_GROW_WAIT_MS	5000
/* Whether all others have memory for @size, as they have noted: 0, or -EBUSY with one named. */
int sg_grow_ask(const struct sg_vol *vol, u64 size, char why[200]);
u64 sg_grow_limit(struct sg_vol *vol);	/* the largest size that sg_grow() could make */
u64 sg_size_now(struct sg_vol *vol);	/* its size, whoever may just have made it grow */

/* --- standing still (freeze.c, docs/snapshots.md) -------------------------------------------- */

/*
 * All systems stand still, for @limit_ms at most: 0. From then on what is in memory is what a power
 * cut would leave, with nothing under way. -EBUSY: one of them does not, or another copy is being
 * made; -EROFS, -EIO; with why. All go on as before then.
 */
int sg_freeze(struct sg_vol *vol, unsigned int limit_ms, char why[200]);
/* They go on. 0: all have stood still since; -EAGAIN: somebody has not, so the copy is void. */
int sg_thaw(struct sg_vol *vol);
#define SG_FREEZE_MS	2000	/* as a rule */
/*
 * Does our part when others copy; waits until all that is under way here has ended. For a thread of
 * its own, after the time (ms) that it returns; -EIO: we have been declared dead.
 */
int sg_stand(struct sg_vol *vol);
/* That thread comes no more: we go on, and so do all who stand still for us. */
void sg_stand_end(struct sg_vol *vol);

struct sg_statfs {
	u64 pages, free_pages, inodes, used_inodes;
};
/* Exact. Pays debts first, so that freed space counts as free. */
int sg_statfs(struct sg_vol *vol, struct sg_statfs *out);
/**
 * struct sg_health - what the volume says of how it fares
 * @epoch: of the volume; @acknowledged: by our slot, or 0
 * @errors: met so far; @error_ino: the inode of the last one
 */
struct sg_health {
	u64 epoch, acknowledged, errors, error_ino;
};
int sg_health(const struct sg_vol *vol, struct sg_health *out);	/* -EIO: that page is bad memory */
/* Pages of the longest free piece. Looks at every chunk: not for those who ask often. */
u64 sg_largest_free(const struct sg_vol *vol);
/* Pays up to @budget debts; returns how many remain, or -errno. */
int sg_reclaim(struct sg_vol *vol, unsigned int budget);
/* struct sg_hunger - since when somebody has found no space; 0 to begin with, and after progress */
struct sg_hunger {
	u64 since;
};
/*
 * For who has got -ENOSPC: pays, and waits for others, for 2 s in all. True: try again. False: it
 * is no use.
 */
bool sg_more_space(struct sg_vol *vol, struct sg_hunger *hunger);

/* --- bad memory (bad.c, docs/bad-memory.md) ------------------------------------------------ */

/*
 * The memory of these bytes cannot be read any more, or can again. All systems see that at once.
 * Takes no lock, and needs no slot. 1: the list has changed; 0: it said so already. -ENOSPC: it is
 * full. -EINVAL: outside the volume.
 */
int sg_bad_add(struct sg_vol *vol, u64 off, u64 bytes);
int sg_bad_remove(struct sg_vol *vol, u64 off, u64 bytes);
/* Entry @i of the list, from 0 on. False: there are no more. An entry of no pages is none. */
bool sg_bad_entry(const struct sg_vol *vol, unsigned int i, u64 *page, u64 *pages);
bool sg_is_bad(const struct sg_vol *vol, u64 off, u64 pages);	/* any of them */
/* Of these, those before the first bad one. */
u64 sg_good_pages(const struct sg_vol *vol, u64 off, u64 pages);
/* Some are known of. Asked on all ways, so it is one word: of our own, as soon as that says so. */
static inline bool sg_has_bad(const struct sg_vol *vol)
{
	return sg_load64(*(const u64 *const volatile *)&vol->bads);
}
/* The page with these bytes, which one would take for granted, is bad. */
static inline bool sg_is_lost(const struct sg_vol *vol, u64 off)
{
	return sg_has_bad(vol) && sg_is_bad(vol, off & ~(SG_PAGE - 1), 1);
}
/*
 * This system is at an end, and looks at nothing of the volume any more: memory that all of it
 * stands on is bad (bad.c), or a later run of it has the slot (slot.c). Whoever does not ask first
 * whether we live asks this.
 */
static inline bool sg_has_stopped(const struct sg_vol *vol)
{
	return *(const u64 *const volatile *)&vol->state == &vol->stopped;
}
u64 sg_bad_pages(const struct sg_vol *vol);
/* Some are bad without which nothing of the volume can be found. Where the first of them are. */
bool sg_bad_vital(const struct sg_vol *vol, u64 *off);
/* -EIO, with vol->why, if that is so: for who is about to use the volume. */
int sg_bad_refuse(struct sg_vol *vol);
/* What this page is to the volume: as text, for people. */
const char *sg_page_role(const struct sg_vol *vol, u64 off);

/* --- inodes -------------------------------------------------------------------------------- */

struct sg_iref {
	u64 ino;
	u64 off;		/* of its struct sg_inode in the volume */
	/*
	 * When not 0: which of the files that have had this number. Changes to another one are
	 * refused with -ESTALE.
	 */
	u64 generation;
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
/*
 * This system uses the inode from now on, by as many openers as it likes: without links it stays
 * until sg_close(). -ESTALE: it is gone, or has no links (@again: it may have none, because we
 * had it open before, or made it).
 */
int sg_open_inode(struct sg_vol *vol, const struct sg_iref *ref, bool again);
/* The last of them is gone. True: it has no links, so that sg_evict() is due. */
bool sg_close_inode(struct sg_vol *vol, const struct sg_iref *ref);
/*
 * Processes of this system have pages of the file mapped (@holes: have zeroes mapped where it has
 * holes), or have not any more. Setting ends with a full fence: then look what is there, then map.
 */
void sg_set_mapper(struct sg_vol *vol, const struct sg_iref *ref, bool holes, bool on);
/*
 * Pages have been cut out of the file (@holes: holes of it filled): waits until no other system's
 * processes see what was there before, at most 2 s. Nothing that quiesce waits for may be held.
 */
void sg_wait_mappers(struct sg_vol *vol, const struct sg_iref *ref, bool holes);
/* +1 whenever pages are taken out of the file's table. */
u64 sg_cuts(const struct sg_vol *vol, const struct sg_iref *ref);
/*
 * This system has no use for the inode any more. Frees it if it has no links and no other system
 * has it open.
 */
int sg_evict(struct sg_vol *vol, const struct sg_iref *ref);
/*
 * The same, for callers that nobody can kill (memory reclaim, exits): it waits for no other system.
 * -EBUSY, -ENOSPC: not without that; the system that owes the inode frees it, by sg_settle().
 */
int sg_evict_try(struct sg_vol *vol, const struct sg_iref *ref);

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

/* @type (as S_IFMT >> 12) may be NULL. *out tells the generation, too. */
int sg_lookup(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
	      struct sg_iref *out, unsigned int *type);
int sg_create(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
	      const struct sg_new *new, struct sg_iref *out);
/* An inode without a name (O_TMPFILE): owed to be freed until sg_link() gives it one. */
int sg_tmpfile(struct sg_vol *vol, const struct sg_new *new, struct sg_iref *out);
int sg_link(struct sg_vol *vol, const struct sg_iref *inode, const struct sg_iref *dir,
	    const char *name, u32 len, s64 now);
/*
 * Removes the name; the inode itself stays, owed, until sg_evict(). @seen: what the caller takes to
 * be under it; if another system has put something else there: -ESTALE. NULL: whatever is there.
 * Unless @exact, another file that nothing protects will do.
 */
int sg_unlink_seen(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
		   const struct sg_iref *seen, bool exact, s64 now);
int sg_rmdir_seen(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
		  const struct sg_iref *seen, s64 now);
static inline int sg_unlink(struct sg_vol *vol, const struct sg_iref *dir, const char *name,
			    u32 len, s64 now)
{
	return sg_unlink_seen(vol, dir, name, len, NULL, false, now);
}
static inline int sg_rmdir(struct sg_vol *vol, const struct sg_iref *dir, const char *name, u32 len,
			   s64 now)
{
	return sg_rmdir_seen(vol, dir, name, len, NULL, now);
}
/**
 * struct sg_renamed - what the caller takes to be under the two names; else -ESTALE
 * @what: under the old one; @replaced: under the new one, NULL: nothing
 * @exact: nor may another file be replaced than @replaced; else any that nothing protects may
 */
struct sg_renamed {
	const struct sg_iref *what, *replaced;
	bool exact;
};
/* @seen: NULL: whatever is there. */
int sg_rename_seen(struct sg_vol *vol, const struct sg_iref *odir, const char *oname, u32 olen,
		   const struct sg_iref *ndir, const char *nname, u32 nlen, unsigned int flags,
		   const struct sg_new *whiteout, const struct sg_renamed *seen, s64 now);
static inline int sg_rename(struct sg_vol *vol, const struct sg_iref *odir, const char *oname,
			    u32 olen, const struct sg_iref *ndir, const char *nname, u32 nlen,
			    unsigned int flags, const struct sg_new *whiteout, s64 now)
{
	return sg_rename_seen(vol, odir, oname, olen, ndir, nname, nlen, flags, whiteout, NULL,
			      now);
}
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

/*
 * The walk (D5): lock-free, checked. Wants page numbers; beyond the table: a hole. -ESTALE: no
 * table, since the number is another file's by now.
 */
int sg_walk(const struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want,
	    struct sg_run *run);
/*
 * As sg_walk(), also of pages whose memory is bad, for who does not look into them. -EIO: where the
 * page is stands in bad memory itself. Of sg_walk() that, or the page is bad.
 */
int sg_walk_bad(const struct sg_vol *vol, const struct sg_iref *ref, u64 page, u64 want,
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
	bool locked, append;
};

#define SG_WRITE_KEEP_SIZE	1u
/* Only where no lock is needed: in place, inside the size. Does not sleep. -EAGAIN: not here. */
#define SG_WRITE_IN_PLACE	2u
/* Keeps the inode locked from begin to end, in place too: what is written to stays the file's. */
#define SG_WRITE_LOCKED		4u
/* Between sg_append_begin() and sg_append_end(): the inode is locked already. */
#define SG_WRITE_APPEND		8u

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
/*
 * Between these two nobody else changes the file, so that what is written behind its size, in as
 * many pieces as it takes, is one. *size is where it ends.
 */
int sg_append_begin(struct sg_vol *vol, const struct sg_iref *ref, u64 *size);
void sg_append_end(struct sg_vol *vol, const struct sg_iref *ref);

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
/*
 * Starts write-back of all lines of the file's pages in [first, first+pages), then fences. Nothing
 * to do, if the file is gone.
 */
int sg_flush(struct sg_vol *vol, const struct sg_iref *ref, u64 first, u64 pages);

/* --- locks of users (flock, fcntl) ----------------------------------------------------------- */

/**
 * struct sg_userlock - a lock of a user: one that is wanted, or one that somebody holds.
 * @kind: SG_USERLOCK_POSIX, _OFD, _FLOCK. The first two exclude each other; flock is by itself.
 * @owner: who it is, within this system and kind: a process, an open file.
 * @start, @last: bytes; SG_USERLOCK_MAX is the last there is. flock: all of them.
 * @slot: of a holder: its system; -1: this one.
 * @follow: of sg_userlock_set(), may be NULL: called with @arg when the lock can be had, before
 *	anything is stored and with the chain locked. An error of it is that of the request, and the
 *	owner keeps what it had. It may seek memory, but not wait for anything else.
 */
struct sg_userlock {
	unsigned int kind;
	bool exclusive;
	u32 pid;
	u64 owner, start, last;
	int slot;
	int (*follow)(void *arg);
	void *arg;
	bool brief;		/* see sg_userlock_await() */
};
#define SG_USERLOCK_MAX		0x7fffffffffffffffULL

/* A request that waits; all zeroes at first. Private to the engine. */
struct sg_userlock_wait {
	u64 off, head, ticket;	/* its record */
	u64 since;
	u64 by, by_owner;	/* the lock that is in the way, or 0 */
	u64 blocker, blocker_owner; /* no circle leads through that one */
};

/*
 * Takes a lock, or what of it the owner does not have yet, and changes what it has otherwise. Does
 * not wait: -EAGAIN, and *holder (may be NULL) is one of those who are in the way. With @wait the
 * request has its place in the queue then: call again soon, with the same @wait, or give up.
 * -EDEADLK: would wait for itself (POSIX). -ENOLCK: no room for more locks.
 * -EAGAIN: a flock of the other type that the owner held is lost. After any other error the owner
 * has what it had.
 */
int sg_userlock_set(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_userlock *want,
		    struct sg_userlock_wait *wait, struct sg_userlock *holder);
/*
 * With @brief, for who holds what other threads wait for, set() and clear() wait for no other
 * system, and look for no circle. -EBUSY, -ENOBUFS: not without waiting; nothing has changed, but
 * that a flock of the other type may be lost. The caller lets go of what it holds, waits by await()
 * until the reason of @err is over (@sure: as clear() does), and comes again. For a request that
 * waits it calls deadlock(): -EDEADLK, it would wait for itself, and is given up; or -EAGAIN.
 */
int sg_userlock_await(struct sg_vol *vol, const struct sg_iref *ref, int err, bool sure);
int sg_userlock_deadlock(struct sg_vol *vol, const struct sg_iref *ref,
			 const struct sg_userlock *want, struct sg_userlock_wait *wait);
/* Whatever set() has answered last: the request is over, and has no place in the queue. */
void sg_userlock_give_up(struct sg_vol *vol, const struct sg_iref *ref,
			 struct sg_userlock_wait *wait);
/* Gives up the range, of either type. -ENOLCK: it splits a lock, and there is no room for two. */
int sg_userlock_clear(struct sg_vol *vol, const struct sg_iref *ref,
		      const struct sg_userlock *range);
/* 0: could be had now; -EAGAIN: *holder is in the way. */
int sg_userlock_test(struct sg_vol *vol, const struct sg_iref *ref, const struct sg_userlock *want,
		     struct sg_userlock *holder);

/* --- relocation ----------------------------------------------------------------------------- */

/**
 * struct sg_relocate_opts - how a volume comes to another base (docs/relocation.md).
 * @phys: the new base; SG_BASE_BEGUN: whereto it is on its way already, else where it is.
 * @id, @wait_ms, @force, @holding: as struct sg_check_opts has them.
 * @flush: for who stores through a cache of pages, which writes them in an order of its own: makes
 * durable all that has been stored. NULL: fences do.
 */
struct sg_relocate_opts {
	u64 phys;
	const struct sg_identity *id;
	unsigned int wait_ms;
	bool force;
	void *owner;		/* for sg_log() */
	int (*holding)(void *ctx, struct sg_vol *vol);
	int (*flush)(void *ctx);
	void (*progress)(void *ctx, const char *phase, u64 done, u64 total);
	void *ctx;
};
#define SG_BASE_BEGUN	(~0ULL)
struct sg_relocate_result {
	u64 from, to;		/* bases; when @resumed, @from is that of who went before us */
	u64 tables, entries;	/* that have been rewritten; 0: there was nothing to do */
	bool resumed;		/* another one had begun, and did not come to the end */
	char why[200];		/* reason of an error */
};
/*
 * Rewrites all physical addresses in a volume that nobody uses. Interrupted anywhere, it leaves
 * one that can only be relocated; whoever does that next goes on. -EBUSY, with res->why: somebody
 * lives. -EUCLEAN: there is damage to repair first, and nothing was changed.
 */
int sg_relocate(void *base, u64 size, const struct sg_relocate_opts *opts,
		struct sg_relocate_result *res);
/* --- shared semaphores (docs/semaphores.md) -------------------------------------------------- */

#include "engine_sem.h"

/* --- check and repair ---------------------------------------------------------------------- */

enum sg_check_mode { SG_CHECK_ONLY, SG_CHECK_PREEN, SG_CHECK_REPAIR };

/**
 * struct sg_check_image - where a metadata image goes: all that a check looks into (docs/tools.md)
 * @put: stores a page of it, which may have been stored before; what is not stored is zeroes.
 * @get: a page that has been stored.
 * @plain: names, targets of links and extended attributes as they are; else they are hidden.
 */
struct sg_check_image {
	int (*put)(void *ctx, u64 off, const void *page);
	int (*get)(void *ctx, u64 off, void *page);
	bool plain;
	void *ctx;
};

struct sg_check_opts {
	enum sg_check_mode mode;
	const struct sg_check_image *image;	/* SG_CHECK_ONLY: to be made as well, or NULL */
	/* Repairing: who we are in the mount table meanwhile, so that nobody else joins. */
	const struct sg_identity *id;
	unsigned int wait_ms;	/* as sg_join() */
	bool force;
	void *owner;		/* for sg_log() */
	/*
	 * The volume has been joined to repair it, or (NULL) is about to be left. Whoever needs
	 * longer than others wait calls sg_beat() meanwhile; so does sg_check(), now and then.
	 * Not 0, with vol->why: it is somebody else's, and is left.
	 */
	int (*holding)(void *ctx, struct sg_vol *vol);
	int (*flush)(void *ctx);	/* as struct sg_relocate_opts has it, for what it says */
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
