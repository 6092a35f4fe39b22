/* SPDX-License-Identifier: GPL-2.0 */
/* A volume that this system uses, and its state in memory; making, finding and opening a volume. */
#ifndef SG_ENGINE_VOLUME_H
#define SG_ENGINE_VOLUME_H

#include <sg_os.h>
#include "format/format.h"

#ifndef EUCLEAN
#define EUCLEAN 117
#endif

/*
 * For large objects in hot paths that the code fills before it reads them. Kernels are built with a
 * compiler that zeroes all other objects.
 */
#ifdef __CHECKER__
#define SG_UNINITIALIZED
#else
#define SG_UNINITIALIZED	__attribute__((__uninitialized__))
#endif

struct sg_identity {
	u8 machine[16];
	u8 boot[16];
	char name[64];
	u64 pid;		/* SG_SLOT_PROCESS(), or 0 */
	u64 beat_ns;
	char version[16];	/* or empty */
};

/*
 * Statistics, deliberately not exact across CPUs. Each transaction area has its own counters,
 * because common ones would move a cache line between CPUs in each transaction. sg_counters() adds
 * them up.
 */
struct sg_counters {
	u64 commits, commit_words, aborts;
	u64 pages_allocated, pages_freed;
	u64 lock_waits, replays;
	u64 quiesces;		/* waits for all readers of this system (D7) */
	/* bytes of atomic writes; bytes written into holes count in neither */
	u64 atomic_replaced, atomic_logged;
};

struct sg_odd {			/* a change counter that was left odd */
	u64 off, seq;
};

struct sg_upcalls;		/* calls from lower layers to higher ones (base/base.h) */
struct sg_ledger;		/* the slot's deferred frees, mirrored in the system's own memory */
struct sg_tx;
struct sg_userlock_release;	/* the release of a user's lock that is still to be made */

/**
 * struct sg_still - this system's part in a freeze (freeze.c)
 * @closed: the gate: no transaction begins.
 * @word: the value of sg_hot.freeze for which this system is frozen, or 0; @answered: the last
 * value that this system handled.
 * @since: when this freeze began. @outside: sg_vol.freeze_mount has been called.
 * @spent: time that this system was recently frozen (ns); @counted: when @spent was last computed.
 */
struct sg_still {
	u64 closed, word, answered, since, spent, counted;
	bool outside;
};

/**
 * struct sg_freezing - state of the system that freezes the others.
 * @phase: 0: no freeze; 1: a thread of this system arranges one; 2: the others are frozen.
 * @word: sg_hot.freeze. @until: when the freeze ends.
 * @seen: state words of all slots.
 */
struct sg_freezing {
	u64 phase, word, until;
	u64 seen[SG_SLOTS];
};

/**
 * struct sg_doorbells - this system's doorbell, and its trust in the others (doorbell.c)
 * @exchange: the exchange to which the driver is connected; 0: none.
 * @rings: rings received. @sent: rings sent. @lost: rings of others that did not arrive.
 * @doubt: when a ring was last found to be lost, or 0.
 * @muted: number of senders whose rings the driver ignores now. The driver stores it.
 * @epoch, @freeze, @grow: words of the hot page for which a ring has last started a thread.
 */
struct sg_doorbells {
	u64 exchange, rings, sent, lost, doubt, muted;
	u64 epoch, freeze, grow;
};

/**
 * struct sg_vol - a volume that this system uses; the struct is in the system's own memory.
 * @base: linear, write-back mapping of the whole volume, and of the memory into which it can grow.
 * @size: the bound: no reference leads beyond it. While the volume grows, the bound is larger than
 * the size in @sb.
 * @room: bytes of memory at @base.
 * @sb: checked copy of the superblock. The engine does not read the superblock in the volume again.
 * The size in @sb follows growth.
 * @slot: this system's slot in the mount table, or -1 (read only, not joined).
 */
struct sg_vol {
	u8 *base;
	u64 size;
	u64 room;
	struct sg_super sb;
	int slot;
	u32 incarnation;
	/* this slot's state word, and its value while this system is live */
	const u64 *state;
	u64 alive;
	struct sg_identity id;	/* what this system stored in its slot */
	u64 beats;		/* this system's heartbeats, as the slot counts them (join.c) */
	bool read_only;
	/* no other system changes the volume meanwhile, so this one need not wait for others */
	bool alone;
	bool steady;		/* the volume does not grow: for the checker */
	u64 shut_down;		/* every change fails with -EIO: fenced, or because of errors= */
	/*
	 * Another thread of this system calls sg_maintain() regularly. If not (programs with one
	 * thread), each thread that waits for an epoch calls it.
	 */
	bool maintained;
	/* This system is about to leave, so it waits for a lock only for some seconds (-EBUSY). */
	bool hurry;
	/*
	 * A joiner waits for no lock beyond this time (sg_ticks()); 0: this system is not joining.
	 */
	u64 join_until;
	/* word of the lock for which the joiner waited at that time, or 0 */
	u64 held_up;
	unsigned int join_wait_ms;	/* how long a join waits for locks; 0: JOIN_WAIT_MS */
	/* the thread in sg_settle(), or 0; whether that thread must return */
	u64 settler, settle_stop;
	/* limit of waits for deferred frees (enospc.c); 0: SPACE_WAIT_MS */
	unsigned int space_wait_ms;
	bool deferred_on_lists;	/* for tests: deferred inodes go on lists, never into the ledger */
	void *owner;		/* for sg_log() */
	const struct sg_upcalls *up;
	/*
	 * called once for each damage found; may set read_only (errors=). NULL: damage is only
	 * logged
	 */
	void (*on_damage)(struct sg_vol *vol, u64 ino, u64 off);
	/*
	 * Called before pages taken out of use may be used again. Afterwards no translation or
	 * mapping of this system may reach them (D7). Walks have ended before the call. NULL: this
	 * system has no translations or mappings.
	 */
	void (*quiesce)(struct sg_vol *vol);
	/*
	 * Reports whether this system still uses inode @ino, which has no links. Called with the
	 * lock that sg_open_inode() and sg_close_inode() take, so it must not wait for such a call,
	 * and must not sleep. If it cannot tell, the answer is yes. NULL: it does not.
	 */
	bool (*in_use)(struct sg_vol *vol, u64 ino, u32 generation);
	/*
	 * Called before the volume grows beyond @room. Returns the bytes of memory that now exist
	 * at the same address. Called from any thread; may sleep. NULL: the memory cannot grow.
	 */
	u64 (*reach)(struct sg_vol *vol);
	/*
	 * Called when the list of bad pages has changed: mappings and windows may reach pages that
	 * are now bad.
	 */
	void (*on_bad)(struct sg_vol *vol);
	u32 bads_seen;		/* changes of that list that this system has seen (bad_pages.c) */
	bool hot_lost;		/* the page with that list is itself bad */
	/*
	 * bad pages that this system has found itself, independent of the list; nown only grows
	 */
	u64 nown, own_bad[SG_BAD_MAX];
	/* points to the list's word, or to nown; if that is 0, no page is bad */
	const u64 *bads;
	/* replaces this slot's state word, if that one must not be loaded */
	u64 stopped;
	/*
	 * Called once, from any thread, when this system has been fenced; must not sleep. NULL: the
	 * fence is only logged.
	 */
	void (*on_death)(struct sg_vol *vol);
	/*
	 * Called when the release of a user's lock waits for its chain. A thread must then call
	 * sg_userlock_settle() soon, and again until no release remains. Must not sleep. NULL:
	 * sg_settle() makes such releases.
	 */
	void (*on_release)(struct sg_vol *vol);
	/*
	 * @on: stops all code outside the engine that stores into the volume, and returns when its
	 * operations have ended. May sleep. Not @on: such code may continue. NULL: there is no such
	 * code.
	 */
	int (*freeze_mount)(struct sg_vol *vol, bool on);
	bool freeze_watched;	/* another thread here calls sg_freeze_watch() regularly */
	/*
	 * Called repeatedly by a thread that waits for another system; must not sleep. If it
	 * returns true, the wait ends with -EINTR, because this thread holds locks for which other
	 * threads here wait. NULL: threads do not give way.
	 */
	bool (*gives_way)(const struct sg_vol *vol);
	/*
	 * Called when a thread has given way, or is being killed, while it waited for the lock at
	 * @lock: the lock of the only chunk with free pages. Must not sleep. NULL: the mount does
	 * not need this.
	 */
	void (*room_locked)(const struct sg_vol *vol, u64 lock);
	struct sg_still still;
	struct sg_freezing freezing;
	/*
	 * Sends an interrupt to the system with number @id at this system's exchange (doorbell.h).
	 * Must not sleep. NULL: this system has no doorbell.
	 */
	void (*ring)(struct sg_vol *vol, u16 id);
	/*
	 * Starts the threads for this work (SG_DUE_*) now. May be called from an interrupt. NULL:
	 * the threads run at their usual times.
	 */
	void (*due)(struct sg_vol *vol, unsigned int due);
	struct sg_doorbells doorbells;
	struct sg_sems *sems;	/* users of semaphores in this system, and waiters (sem_wait.c) */
	struct sg_watch *watch;	/* this system's observations of the other slots (fence.c) */
	struct sg_ack *ack;	/* this system's progress with the epoch (epoch.c) */
#define SG_OPENING	16
	/* locks for setting and clearing the bits of openers (opens.c) */
	struct sg_opening {
		/* padding on both sides: with any alignment, no cache line has two of the locks */
		u64 apart[8];
		struct sg_spin spin;
	} opening[SG_OPENING];
	struct sg_ledger *ledger;
	/* inodes without a name that this system uses, deferred on lists (unnamed.c) */
	struct sg_nameless *nameless;
	/*
	 * positions of walks along the lists of deferred inodes: behind a record; one thread at a
	 * time
	 */
	struct sg_deferred_at {
		u64 busy, ino;
		unsigned int slot, area;
	} deferred_at, deferred_left_at, opens_at;
	struct sg_tx *tx;	/* one per transaction area */
	struct sg_counters stat;	/* counters of calls without a transaction */
	u64 damage_seen[16];	/* offsets that have been reported */
	unsigned int damage_next;
	/*
	 * protects @odd, the search for stray locks (lock.c), arrivals at barriers, and @releases
	 */
	struct sg_spin spin;
	struct sg_odd odd[16];
	u64 odd_next;		/* index of the place for the next entry */
	/* counters that were recently judged damaged: their number, and the time of the last one */
	u64 odd_judged, odd_last;
	/* releases for each chain of users' locks, and their total number (lock_table.c) */
	struct sg_userlock_release *releases[SG_USERLOCK_CHAINS];
	u64 nreleases;
	/* number of threads here that have waited long for another system (struct sg_long_wait) */
	u64 stuck;
	/* number of this system's locks, by hash; exists while it has a slot */
	u64 *held;
	/* where this system last searched for free pages, by sg_cpu() (alloc.c) */
	struct sg_cursor {
		u64 apart[8];
		u64 next;	/* the chunk after the last one searched; 0: no search yet */
		u64 vain;	/* consecutive searches for a long run that found none */
	} cursor[32];
	u64 hints_left;		/* the hints of chunks below this one may be missing (alloc.c) */
	char why[200];		/* reason of the last refusal by sg_open() or sg_join() */
};

#define SG_MAX_FACTOR	16	/* by default a volume can grow to this many times its size */

struct sg_format_opts {
	u64 phys;		/* base address, aligned to SG_VOLUME_ALIGN */
	u64 params;
	u64 chunk_cap;		/* 0: SG_MAX_FACTOR times the current number */
	u64 lease_ms;		/* see sg_set_lease() */
	u32 areas;		/* 0: a default that depends on the size */
	const char *label;	/* or NULL */
	const u8 *uuid;		/* or NULL: random */
	u32 root_mode, root_uid, root_gid; /* root_mode 0 means 0755 */
};

struct sg_probe {		/* result of sg_probe() */
	bool stargate;		/* the primary or the backup has the magic number */
	bool valid;		/* checksum and geometry are right */
	bool from_backup;
	/*
	 * former size in bytes of a volume that was cut short, which makes it invalid; otherwise 0
	 */
	u64 whole;
	struct sg_super sb;
	unsigned int live;	/* slots that are not free */
};

/* Computes the superblock that sg_format() would make, without checksum. -EINVAL with why. */
int sg_format_plan(u64 size, const struct sg_format_opts *opts, struct sg_super *sb, char why[200]);
/* Makes a new file system in @size bytes at @base. Overwrites the old contents without a question.
 * */
int sg_format(void *base, u64 size, const struct sg_format_opts *opts, char why[200]);
/* Reads the superblocks and changes nothing. Returns 0 even if there is no file system. */
int sg_probe(const void *base, u64 size, struct sg_probe *out);
/*
 * As sg_probe(). If there is no superblock at the expected places, searches for the backup of a
 * volume that is smaller than its device. Returns the probed size.
 */
u64 sg_search(const void *base, u64 size, struct sg_probe *out);
/*
 * Checks the superblock at @base and fills *vol. If the primary is damaged, warns and uses the
 * backup. Changes nothing in the volume. -EINVAL/-EUCLEAN/... with vol->why.
 */
int sg_open(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner);
/*
 * As sg_open(), read-only, for callers that only read. Only this call can open a metadata image.
 */
int sg_open_to_look(struct sg_vol *vol, void *base, u64 size, void *owner);
static inline bool sg_is_image(const struct sg_vol *vol)
{
	return vol->sb.incompat & SG_INCOMPAT_IMAGE;
}
/*
 * Writes @sb to both copies, crash-safe: label, params, uuid, phys. No other system may have
 * joined.
 */
int sg_super_write(struct sg_vol *vol, const struct sg_super *sb);
/*
 * Makes a copied volume independent of the original: sets a new UUID, this label, and the current
 * time. Nothing else in a volume depends on its UUID. Needs exclusive access, otherwise -EBUSY.
 */
int sg_renew(struct sg_vol *vol, const char *label, char why[200]);
/*
 * Gives the same volume another UUID and label; NULL: unchanged. Needs exclusive access, otherwise
 * -EBUSY.
 */
int sg_relabel(struct sg_vol *vol, const u8 *uuid, const char *label, char why[200]);
void sg_make_uuid(u8 uuid[16]);		/* a random one */

#endif
