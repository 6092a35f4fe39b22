/* SPDX-License-Identifier: GPL-2.0 */
/* A volume that this system uses, and its state in memory; making, finding and opening a volume. */
#ifndef SG_ENGINE_VOLUME_H
#define SG_ENGINE_VOLUME_H

#include <sg_os.h>
#include "format/format.h"

#ifndef EUCLEAN
#define EUCLEAN 117
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
 * Statistics; deliberately not exact across CPUs. Each transaction area has its own: threads would
 * take a common line from each other with each transaction. sg_counters() adds them up.
 */
struct sg_counters {
	u64 commits, commit_words, aborts;
	u64 pages_allocated, pages_freed;
	u64 lock_waits, replays;
	/* bytes of atomic writes; those in holes are neither */
	u64 atomic_replaced, atomic_logged;
};

struct sg_odd {			/* a change counter that was left odd */
	u64 off, seq;
};

struct sg_upcalls;		/* calls from lower layers to higher ones (base/base.h) */
struct sg_ledger;		/* the slot's deferred frees, mirrored in the system's own memory */
struct sg_tx;
struct sg_userlock_release;	/* of a user's lock, which could not be made in time */

/**
 * struct sg_still - this system's part in a freeze (freeze.c)
 * @closed: the gate: no transaction begins.
 * @word: the sg_hot.freeze for which this system is frozen, or 0; @answered: the last one that it
 *   handled.
 * @since: when that began. @outside: sg_vol.freeze_mount has been called.
 * @spent: time that was lately spent frozen (ns), @counted: when that was last computed.
 */
struct sg_still {
	u64 closed, word, answered, since, spent, counted;
	bool outside;
};

/**
 * struct sg_freezing - what the freezing system knows of the others.
 * @phase: 0: no freeze; 1: a thread of this system arranges one; 2: the others are frozen.
 * @word: sg_hot.freeze. @until: when the freeze ends.
 * @seen: state words of all slots.
 */
struct sg_freezing {
	u64 phase, word, until;
	u64 seen[SG_SLOTS];
};

/**
 * struct sg_vol - a volume that this system uses. In the system's own memory.
 * @base: linear, write-back mapping of the whole volume, and of the memory into which it can grow.
 * @size: the bound: no reference leads beyond it. While the volume grows it is more than @sb has.
 * @room: bytes of memory at @base.
 * @sb: checked copy of the superblock. The engine does not read the volume's own again. Its size
 *   follows.
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
	/* no other system changes the volume meanwhile: nothing to wait for */
	bool alone;
	bool steady;		/* the size stays as it was: for the checker */
	u64 shut_down;		/* -EIO for every change: fenced, or errors= says so */
	/*
	 * Another thread of this system calls sg_maintain() regularly. Otherwise each thread that
	 * waits for an epoch calls it: programs with one thread.
	 */
	bool maintained;
	/* This system is about to leave: it waits for a lock for some seconds only (-EBUSY). */
	bool hurry;
	/*
	 * A joiner waits for no lock beyond this time (sg_ticks()); 0: this system is not joining.
	 */
	u64 join_until;
	u64 held_up;		/* word of the lock that the joiner waited for then, or 0 */
	unsigned int join_wait_ms;	/* how long a join waits for locks; 0: JOIN_WAIT_MS */
	/* the thread in sg_settle(), or 0; whether it has to return */
	u64 settler, settle_stop;
	/* limit of waits for deferred frees (enospc.c); 0: SPACE_WAIT_MS */
	unsigned int space_wait_ms;
	bool deferred_on_lists;	/* for tests: deferred inodes go on lists, never into the ledger */
	void *owner;		/* for sg_log() */
	const struct sg_upcalls *up;
	/* called once per damage found; may set read_only (errors=). NULL: only logged */
	void (*on_damage)(struct sg_vol *vol, u64 ino, u64 off);
	/*
	 * Called before pages taken out of use may be used again: no translation or mapping of this
	 * system may reach them afterwards (D7). Walks have ended already. NULL: there are none.
	 */
	void (*quiesce)(struct sg_vol *vol);
	/* Does this system still use inode @ino, which has no links? Must not sleep. NULL: no. */
	bool (*in_use)(struct sg_vol *vol, u64 ino, u32 generation);
	/*
	 * The volume is to grow beyond @room. Returns the bytes of memory that are there now, at
	 * the same address. Called from any thread; may sleep. NULL: as many as before.
	 */
	u64 (*reach)(struct sg_vol *vol);
	/*
	 * The list of bad pages has changed: mappings and windows may show pages that are bad now.
	 */
	void (*on_bad)(struct sg_vol *vol);
	u32 bads_seen;		/* changes of that list that this system has seen (bad_pages.c) */
	bool hot_lost;		/* the page with that list is itself bad */
	/*
	 * bad pages that this system has found itself, independent of the list; 0: none. nown only
	 * grows
	 */
	u64 nown, own_bad[SG_BAD_MAX];
	const u64 *bads;	/* points to the list's word, or to nown; 0 there: no page is bad */
	u64 stopped;		/* replaces this slot's state word if that may not be loaded */
	/*
	 * This system has been fenced: called once, from anywhere; must not sleep. NULL: only
	 * logged.
	 */
	void (*on_death)(struct sg_vol *vol);
	/*
	 * The release of a user's lock waits for its chain: sg_userlock_settle() has to be called
	 * soon, and again until it has made all of them. Must not sleep. NULL: sg_settle() does it.
	 */
	void (*on_release)(struct sg_vol *vol);
	/*
	 * @on: from now on no code outside the engine stores into the volume; operations in
	 *   progress have ended. May sleep. Not @on: such code may continue. NULL: there is none.
	 */
	int (*freeze_mount)(struct sg_vol *vol, bool on);
	bool freeze_watched;	/* another thread here calls sg_freeze_watch() regularly */
	/*
	 * The calling thread waits for another system. If this thread holds locks for which other
	 * threads here wait, its wait ends with -EINTR. Asked at each look; must not sleep. NULL:
	 * no.
	 */
	bool (*gives_way)(const struct sg_vol *vol);
	/*
	 * The calling thread has given way, or is being killed, while it waited for the lock at
	 * @lock, of the only chunk with free pages. Must not sleep. NULL: nobody asks.
	 */
	void (*room_locked)(const struct sg_vol *vol, u64 lock);
	struct sg_still still;
	struct sg_freezing freezing;
	/* Makes another system look at its bell at once, by an interrupt. NULL: it looks anyway. */
	void (*ring)(struct sg_vol *vol, unsigned int slot);
	struct sg_sems *sems;	/* users of semaphores in this system, and waiters (sem_wait.c) */
	struct sg_watch *watch;	/* this system's observations of the other slots (fence.c) */
	struct sg_ack *ack;	/* this system's progress with the epoch (epoch.c) */
#define SG_OPENING	16
	/* guard setting and withdrawing bits of openers (opens.c) */
	struct sg_opening {
		u64 apart[8];	/* on both sides, whatever the alignment: no line has two of them */
		struct sg_spin spin;
	} opening[SG_OPENING];
	struct sg_ledger *ledger;
	/* inodes without a name that this system uses, deferred on lists (unnamed.c) */
	struct sg_nameless *nameless;
	/*
	 * positions of looks along the lists of deferred inodes: behind a record; one thread at a
	 * time
	 */
	struct sg_deferred_at {
		u64 busy, ino;
		unsigned int slot, area;
	} deferred_at, deferred_left_at, opens_at;
	struct sg_tx *tx;	/* one per transaction area */
	struct sg_counters stat;	/* of calls without a transaction */
	u64 damage_seen[16];	/* offsets that have been reported */
	unsigned int damage_next;
	/* guards @odd, the look for stray locks (lock.c), arrivals at barriers, @releases */
	struct sg_spin spin;
	struct sg_odd odd[16];
	u64 odd_next;		/* place of the next one, in turn */
	/* counters judged damaged lately: their number, and the time of the last one */
	u64 odd_judged, odd_last;
	/* per chain of users' locks, and how many in all (lock_table.c) */
	struct sg_userlock_release *releases[SG_USERLOCK_CHAINS];
	u64 nreleases;
	/* threads of this system that have waited long for another one (struct sg_long_wait) */
	u64 stuck;
	u64 *held;		/* this system's locks, counted by hash; as long as it has a slot */
	/* where this system looked last for free pages, by sg_cpu() (alloc.c) */
	struct sg_cursor {
		u64 apart[8];
		u64 next;	/* the chunk behind it; 0: nowhere yet */
		u64 vain;	/* searches for a long run that found none, one after the other */
	} cursor[32];
	u64 hints_left;		/* hints of the chunks below this one may be missing (alloc.c) */
	char why[200];		/* reason of the last refusal by sg_open() or sg_join() */
};

#define SG_MAX_FACTOR	16	/* by default a volume can grow to so many times its size */

struct sg_format_opts {
	u64 phys;		/* base address, aligned to SG_VOLUME_ALIGN */
	u64 params;
	u64 chunk_cap;		/* 0: SG_MAX_FACTOR times the present number */
	u64 lease_ms;		/* see sg_set_lease() */
	u32 areas;		/* 0: default by size */
	const char *label;	/* or NULL */
	const u8 *uuid;		/* or NULL: random */
	u32 root_mode, root_uid, root_gid; /* root_mode 0: 0755 */
};

struct sg_probe {		/* result of sg_probe() */
	bool stargate;		/* has the magic number, in the primary or the backup */
	bool valid;		/* checksum and geometry hold */
	bool from_backup;
	u64 whole;		/* not valid because it was cut short: its former bytes, or 0 */
	struct sg_super sb;
	unsigned int live;	/* slots that are not free */
};

/* Computes the superblock that sg_format() would make, without checksum. -EINVAL with why. */
int sg_format_plan(u64 size, const struct sg_format_opts *opts, struct sg_super *sb, char why[200]);
/* Makes a new file system in @size bytes at @base. Overwrites without asking. */
int sg_format(void *base, u64 size, const struct sg_format_opts *opts, char why[200]);
/* Looks, changes nothing. 0 also if there is no file system. */
int sg_probe(const void *base, u64 size, struct sg_probe *out);
/*
 * As sg_probe(). If there is no superblock at the expected places, looks for the backup of a volume
 * that is smaller than its device. Returns the probed size.
 */
u64 sg_search(const void *base, u64 size, struct sg_probe *out);
/*
 * Fills *vol for the volume at @base, @size: the superblock has been checked (the backup replaces a
 * damaged primary, with a warning). Changes nothing. -EINVAL/-EUCLEAN/... with vol->why.
 */
int sg_open(struct sg_vol *vol, void *base, u64 size, bool read_only, void *owner);
/*
 * As sg_open(), read-only, for callers that only look: also opens a metadata image, which nothing
 * else can use.
 */
int sg_open_to_look(struct sg_vol *vol, void *base, u64 size, void *owner);
static inline bool sg_is_image(const struct sg_vol *vol)
{
	return vol->sb.incompat & SG_INCOMPAT_IMAGE;
}
/*
 * Writes sb to both copies, crash-safe: label, params, uuid, phys. No other system may be joined.
 */
int sg_super_write(struct sg_vol *vol, const struct sg_super *sb);
/*
 * Makes a copy of another volume a volume of its own: with a new UUID, this label, and the present
 * time. Nothing else in a volume depends on its UUID. Needs exclusive access, otherwise -EBUSY.
 */
int sg_renew(struct sg_vol *vol, const char *label, char why[200]);
/*
 * Gives the same volume another UUID and label; NULL: as before. Needs exclusive access, otherwise
 * -EBUSY.
 */
int sg_relabel(struct sg_vol *vol, const u8 *uuid, const char *label, char why[200]);
void sg_make_uuid(u8 uuid[16]);		/* a random one */

#endif
