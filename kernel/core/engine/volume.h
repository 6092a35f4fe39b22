/* SPDX-License-Identifier: GPL-2.0 */
/* A volume that this system uses: what it knows of it; making, finding and opening one. */
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

struct sg_upcalls;		/* what lower layers ask of higher ones (internal.h) */
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
	u64 beats;		/* heartbeats of ours, as the slot counts them (join.c) */
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
	unsigned int space_wait_ms;	/* for space that is owed (enospc.c); 0: SPACE_WAIT_MS */
	bool owed_on_lists;	/* for tests: inodes go on lists, never into the ledger */
	void *owner;		/* for sg_log() */
	const struct sg_upcalls *up;
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
	u32 bads_seen;		/* changes of that list that we know of (bad_pages.c) */
	bool hot_lost;		/* the page with that list is bad itself */
	/* what we have found ourselves, whatever the list says by now; 0: none. nown only grows */
	u64 nown, own_bad[SG_BAD_MAX];
	const u64 *bads;	/* 0 there: no page is bad; the list's word, or nown */
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
	struct sg_watch *watch;	/* what we have seen of the others (fence.c) */
	struct sg_ack *ack;	/* how far we are with the epoch (epoch.c) */
#define SG_OPENING	16
	struct sg_spin opening[SG_OPENING]; /* setting and taking back of openers' bits (opens.c) */
	struct sg_ledger *ledger;
	struct sg_nameless *nameless;	/* what we use, and owe on lists (unnamed.c) */
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
	u64 hints_left;		/* hints of the chunks below may be missing (alloc.c) */
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

#endif
