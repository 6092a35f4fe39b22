/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * The bytes of a StargateFS volume. This header is the only place that defines them.
 *
 * Little-endian, x86-64. Every field that can change while the volume is mounted is one naturally
 * aligned 64-bit word. The journal therefore consists of words (see struct sg_area), and a reader
 * never sees half of a field. All references are volume-relative byte offsets; only file tables
 * hold physical addresses, because the MMU walks them (P1 3.4, D5).
 *
 * Layout, in pages of 4 KiB (docs/format.md explains and draws it):
 *
 *   page 0        superblock                      checksummed, rewritten only by tools
 *   page 1        hot page: shared locks, counters, system inodes
 *   slot_off      mount table, SG_SLOTS entries
 *   journal_off   SG_SLOTS * areas transaction areas of one page each
 *   ledger_off    SG_SLOTS ledgers of one page each
 *   hint_off      two advisory bitmaps over the chunks
 *   chunk_off     chunk table: lock and page bitmap of each 2 MiB of the volume
 *   data_off      everything else, allocated by page: files, tables, directories, inodes, xattrs
 *   last page     backup superblock, and copies of the system inodes' root words (struct sg_last)
 */
#ifndef SG_FORMAT_H
#define SG_FORMAT_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/build_bug.h>
#else
#include <stdint.h>
#include <stddef.h>
#include <assert.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;
#endif

#include "../uapi/semtype.h"

#define SG_MAGIC		0x4554414752415453ULL	/* "STARGATE" */
#define SG_VERSION		1
#define SG_FS_MAGIC		0x53544152		/* statfs f_type, "STAR" */

#define SG_PAGE_SHIFT		12
#define SG_PAGE			(1ULL << SG_PAGE_SHIFT)
#define SG_CHUNK_SHIFT		21
#define SG_CHUNK		(1ULL << SG_CHUNK_SHIFT)
#define SG_CHUNK_PAGES		512

#define SG_VOLUME_MIN		(16ULL << 20)
#define SG_VOLUME_MAX		(64ULL << 40)
#define SG_VOLUME_ALIGN		SG_CHUNK	/* of base and size */
#define SG_FILE_MAX		(64ULL << 40)	/* four table levels reach 256 TiB */
#define SG_NAME_MAX		255
#define SG_SYMLINK_MAX		4095
#define SG_LINK_MAX		0x7fffffffu

#define SG_SLOTS		64
#define SG_AREAS_MAX		16	/* transactions that one system can have in progress */

/*
 * Effect of an unknown bit: in compat none; in ro_compat only read-only mounts; in incompat no
 * mount.
 */
#define SG_COMPAT_KNOWN		0ULL
/*
 * set when the first ring is made: software without this feature would free a ring but not its data
 */
#define SG_RO_COMPAT_RINGS	(1ULL << 0)
/* set when the first file is sealed: software without this feature would write to such a file */
#define SG_RO_COMPAT_SEALS	(1ULL << 1)
#define SG_RO_COMPAT_KNOWN	(SG_RO_COMPAT_RINGS | SG_RO_COMPAT_SEALS)
#define SG_INCOMPAT_MOVING	(1ULL << 0)	/* half moved to another base: sg_super.move_to */
#define SG_INCOMPAT_IMAGE	(1ULL << 1)	/* metadata, without contents of files */
/* an image whose names are hidden: they do not match the hashes in their keys */
#define SG_INCOMPAT_HIDDEN	(1ULL << 2)
/*
 * records may have logs (SG_AREA_LOGS()): software without this feature would replay logs as words
 */
#define SG_INCOMPAT_ATOMIC	(1ULL << 3)
#define SG_INCOMPAT_KNOWN	(SG_INCOMPAT_MOVING | SG_INCOMPAT_IMAGE | SG_INCOMPAT_HIDDEN | \
				 SG_INCOMPAT_ATOMIC)

/*
 * A size in chunks, and a number whose meaning depends on the word. A volume can grow while systems
 * use it (docs/protocol.md, section 7).
 */
#define SG_SIZE_WORD(size, n)	((u64)(size) >> SG_CHUNK_SHIFT | (u64)(n) << 32)
#define SG_SIZE_OF(w)		((u64)(u32)(w) << SG_CHUNK_SHIFT)
#define SG_SIZE_NR(w)		((u32)((w) >> 32))

/*
 * SG_FREEZE: the longest time for which systems stay frozen (ms), and the number of the attempt.
 * SG_FROZEN: the attempt for which a system is frozen (docs/snapshots.md).
 */
#define SG_FREEZE(ms, n)	((u64)(u32)(ms) | (u64)(n) << 32)
#define SG_FREEZE_LIMIT(w)	((u32)(w))
#define SG_FREEZE_NR(w)		((u32)((w) >> 32))
#define SG_FREEZE_MAX_MS	10000u
#define SG_FROZEN(n, inc)	((u64)(u32)(n) | (u64)(inc) << 32)

/* sg_super.params */
/* data=atomic (P3): the root had SG_FL_ATOMIC from the start; in place otherwise */
#define SG_PARAM_DATA_ATOMIC	(1ULL << 0)
#define SG_PARAM_HOST_SPLICE	(1ULL << 1)	/* the host may mount with map=splice (D5) */
#define SG_PARAM_KNOWN		(SG_PARAM_DATA_ATOMIC | SG_PARAM_HOST_SPLICE)

/**
 * struct sg_super - the superblock: page 0, and a copy in the volume's last page.
 *
 * Only mkfs, tune, resize and relocate write it. sg_geometry() computes the offsets from size,
 * areas and chunk_cap; a superblock with other offsets is refused.
 */
struct sg_super {
	u64 magic;
	u32 version;
	u32 crc;		/* crc32c of this structure with crc = 0 */
	u64 compat;
	u64 ro_compat;
	u64 incompat;
	u8 uuid[16];
	char label[64];		/* zero-terminated */
	u64 phys;		/* physical address of the volume's first byte (D3) */
	u64 size;		/* bytes */
	u64 params;
	u64 created;		/* ns since the Unix epoch */
	u64 generation;		/* +1 with each rewrite */
	u64 hash_seed[2];	/* for directory hashes */
	u32 areas;		/* transaction areas per slot */
	u32 slots;		/* SG_SLOTS */
	u64 chunks;		/* size / SG_CHUNK */
	u64 chunk_cap;		/* capacity of the chunk table: growth in place */
	u64 slot_off;
	u64 journal_off;
	u64 ledger_off;
	u64 hint_off;
	u64 chunk_off;
	u64 data_off;
	u64 free_base;		/* free pages when the volume was made; see sg_area.free_pages */
	u64 move_to;		/* SG_INCOMPAT_MOVING: the new base; see SG_PTE_MOVED */
	u64 reserved[31];
};

/**
 * struct sg_lock - a lock between systems (D6). It has an owner, which hands it over to waiting
 * systems in turn.
 * @word: 0, or SG_LOCK_*: the holder.
 * @waiters: one bit for each slot that waits.
 *
 * A lock counts as free if the slot in its word is free or has another incarnation. One store to a
 * dead system's slot, after the replay of its journal, therefore releases all locks of that system.
 */
struct sg_lock {
	u64 word;
	u64 waiters;
};
#define SG_LOCK_SLOT(w)		((unsigned int)((w) & 0xff) - 1)	/* slot + 1 in bits 0-7 */
#define SG_LOCK_INC(w)		((u32)((w) >> 8))		/* incarnation in bits 8-39 */
/* handed over to that slot, whose system has not accepted it yet */
#define SG_LOCK_HANDED		(1ULL << 40)
#define SG_LOCK_DOUBT	(1ULL << 41)	/* that slot checks whether one of its threads holds it */
/* a system has waited long: the holder must hand the lock over */
#define SG_LOCK_ASKED	(1ULL << 42)
#define SG_LOCK_BITS		((1ULL << 43) - 1)	/* all bits that a word may have */
#define SG_LOCK_WORD(slot, inc)	((u64)((slot) + 1) | (u64)(inc) << 8)

/*
 * The file table (P1 3.4, D5). Level 1 entries map 4 KiB. Level 2 entries map 2 MiB (leaf) or point
 * to a level 1 table. Level 3 entries map 1 GiB (leaf; valid, but the engine makes none) or point
 * to a level 2 table. Level 4 entries point to a level 3 table. Empty entries are all zero. Leaves
 * and links have exactly the flags below.
 */
#define SG_PTE_PRESENT		(1ULL << 0)
#define SG_PTE_WRITE		(1ULL << 1)
#define SG_PTE_ACCESSED		(1ULL << 5)
#define SG_PTE_DIRTY		(1ULL << 6)
#define SG_PTE_HUGE		(1ULL << 7)	/* leaf above level 1 */
/*
 * In entries and root words, only while the volume moves (SG_INCOMPAT_MOVING). With this flag the
 * address is relative to sg_super.move_to, without it to sg_super.phys (docs/relocation.md).
 */
#define SG_PTE_MOVED		(1ULL << 9)
#define SG_PTE_NX		(1ULL << 63)
#define SG_PTE_ADDR		0x000ffffffffff000ULL
#define SG_PTE_TABLE		(SG_PTE_PRESENT | SG_PTE_WRITE | SG_PTE_ACCESSED | SG_PTE_DIRTY)
#define SG_PTE_LEAF		(SG_PTE_TABLE | SG_PTE_NX)
#define SG_PTE_LEAF_HUGE	(SG_PTE_LEAF | SG_PTE_HUGE)
#define SG_TABLE_ENTRIES	512
#define SG_TABLE_LEVELS		4

/*
 * A file's root word (sg_inode.table) is 0 for an empty file. Otherwise it is an entry as above
 * that names the root; bits that the MMU ignores have the height. Height 0: the entry is the leaf
 * of the file's only page. Height h: the entry names a level h table. A root is one word, so one
 * store changes it.
 */
#define SG_ROOT_HEIGHT_SHIFT	52
#define SG_ROOT_HEIGHT(w)	((unsigned int)((w) >> SG_ROOT_HEIGHT_SHIFT) & 7)
#define SG_ROOT(entry, height)	(((entry) & ~SG_PTE_NX) | (u64)(height) << SG_ROOT_HEIGHT_SHIFT)

/**
 * struct sg_inode - one file. Inode number n is record n of the inode file (SG_SYS_INODES).
 *
 * @mode == 0 marks a free record, linked through @next_free. The first cache line has the fields
 * that every open, stat, read and write needs.
 */
struct sg_inode {
	struct sg_lock lock;	/* orders all changes to this inode between systems */
	u64 seq;		/* change counter * 2, odd while a change is being applied (D9) */
	u64 mode;		/* low 32: st_mode; high 32: link count */
	u64 owner;		/* low 32: uid; high 32: gid */
	u64 size;
	u64 table;		/* file: root word; directory: index root; symlink: target */
	u64 blocks;		/* pages that belong to this inode, tables and xattrs included */
	u64 mtime;		/* this and the other times: signed ns since the Unix epoch */
	u64 ctime;
	u64 atime;
	u64 btime;
	u64 xattr;		/* offset of the xattr blob's head page, or 0 */
	u64 genflags;		/* low 32: generation; high 32: SG_FL_* */
	u64 special;		/* directory: inode number of its parent; device node: dev_t */
	u64 entries;		/* directory: number of its names, without . and .. */
	u64 next_free;		/* free record: number of the next one, or 0 */
	/* one bit for each slot that has the inode open (keeps unlinked files) */
	u64 openers;
	u64 project;		/* reserved for quotas */
	u64 cuts;		/* grows by 1 whenever pages leave the file table */
	u64 mappers;		/* one bit for each slot whose processes map pages of the file */
	/* one bit for each slot whose processes map zero pages for its holes */
	u64 holers;
	/*
	 * SG_DEFERRED_LINK() if the inode is on a list of deferred inodes (struct sg_area);
	 * otherwise 0
	 */
	u64 deferred_next;
	/*
	 * 0, or the system (SG_LOCK_WORD()) that may be about to replace pages, or to seal the
	 * file: a system that wants to map the file, or to open it for writing, waits for that one
	 * (docs/atomic-data.md, docs/sealed-files.md)
	 */
	u64 replacing;
	/* a symlink's target if it is shorter than this; with SG_FL_DIGEST: SG_DIGEST_SIZE bytes */
	u8 tail[64];
};
#define SG_INODE_SIZE		256
#define SG_INODES_PER_PAGE	(SG_PAGE / SG_INODE_SIZE)
#define SG_INO_ROOT		1	/* record 0 is never used */
#define SG_INO_MAX		((1ULL << 36) - 1)

/* inode flags */
#define SG_FL_IMMUTABLE		(1u << 0)
#define SG_FL_APPEND		(1u << 1)
#define SG_FL_NOATIME		(1u << 2)
#define SG_FL_NODUMP		(1u << 3)
#define SG_FL_SYNC		(1u << 4)
#define SG_FL_DIRSYNC		(1u << 5)
/* pages behind size may remain: the ledger names the inode */
#define SG_FL_CUTTING		(1u << 6)
/* file: each write is atomic; directory: new files and directories in it get the flag */
#define SG_FL_ATOMIC		(1u << 7)
/* with SG_FL_ATOMIC: all systems have seen that flag, so writes may replace whole pages */
#define SG_FL_REPLACE		(1u << 8)
/* a process has written with RWF_ATOMIC: readers check the change counter */
#define SG_FL_WHOLE		(1u << 9)
/*
 * with SG_FL_ATOMIC or SG_FL_WHOLE: each system has had time to see that flag, so all writes take
 * the lock
 */
#define SG_FL_TOLD		(1u << 10)
/* file: contents and size are final (docs/sealed-files.md) */
#define SG_FL_SEALED		(1u << 11)
/* with SG_FL_SEALED: @tail has the root of a tree of hashes over the contents */
#define SG_FL_DIGEST		(1u << 12)
#define SG_FL_KNOWN		0x1fffu
/* only the engine sets and clears these; sg_setattr() does not change them */
#define SG_FL_ENGINE		(SG_FL_CUTTING | SG_FL_ATOMIC | SG_FL_REPLACE | SG_FL_WHOLE | \
				 SG_FL_TOLD | SG_FL_SEALED | SG_FL_DIGEST)
#define SG_DIGEST_SIZE		32u	/* SHA-256 */

/* System inodes: areas that grow on demand, kept as files in the hot page. */
enum { SG_SYS_INODES, SG_SYS_LOCKS, SG_SYS_SEMS, SG_SYS_SPARE, SG_SYS_COUNT };

#define SG_BAD_MAX		102u	/* ranges of bad pages that a volume can record */

/**
 * struct sg_hot - page 1: words that all systems share.
 */
struct sg_hot {
	struct sg_lock rename_lock;	/* moving directories between parents */
	struct sg_lock inode_lock;	/* growth of the inode file */
	struct sg_lock slot_lock;	/* joining, leaving, recovery */
	u64 incarnation;		/* the last one assigned; atomic add */
	u64 epoch;			/* the current epoch (D7) */
	/* number of times that damage was found at run time: fsck is due */
	u64 errors;
	u64 error_ino;
	u64 inodes;			/* records in the inode file */
	struct sg_lock alone_lock;	/* exclusive access, for fsck and other tools */
	u64 lease_ms;			/* silence after which a system is fenced; 0: never */
	u64 size;			/* of the volume, if it has grown; otherwise 0 */
	/* SG_SIZE_WORD(size, attempt): the growth in progress; size 0: none is in progress */
	u64 grow;
	struct sg_lock grow_lock;	/* growth of the volume */
	u64 freeze;			/* SG_FREEZE(limit, attempt); limit 0: no freeze */
	struct sg_lock freeze_lock;	/* the system that freezes the others */
	/* one bit for each slot whose last owner was fenced for silence and may still run */
	u64 lapsed;
	u8 reserved[192 - 176];
	u64 bads;			/* SG_BADS_*: used entries of the list */
	u64 bad[SG_BAD_MAX];		/* SG_BAD(), or 0; docs/bad-memory.md */
	u64 reserved2;
	struct sg_inode sys[SG_SYS_COUNT];
	/* how to ring each slot's system: SG_DOORBELL(), or 0 (docs/doorbells.md) */
	u64 doorbell[SG_SLOTS];
};

/*
 * A system's doorbell: its number at the exchange that connects it with other systems, the number
 * of the exchange (not 0), and the system's incarnation. The word is valid only while the slot is
 * LIVE with this incarnation.
 */
#define SG_DOORBELL(exchange, id, inc) \
	((u64)(u16)(id) | (u64)(u16)(exchange) << 16 | (u64)(u32)(inc) << 32)
#define SG_DOORBELL_ID(w)	((u16)(w))
#define SG_DOORBELL_EXCHANGE(w)	((u16)((w) >> 16))
#define SG_DOORBELL_INC(w)	((u32)((w) >> 32))

/* A range of bad pages: the first page's number, and the number of pages. */
#define SG_BAD(page, n)		((u64)(page) | (u64)((n) - 1) << 40 | 1ULL << 63)
#define SG_BAD_PAGE(w)		((w) & ((1ULL << 40) - 1))
#define SG_BAD_COUNT(w)		(((w) >> 40 & 0x3fffff) + 1)
#define SG_BAD_COUNT_MAX	0x400000u
#define SG_BAD_VALID(w)		((w) >> 62 == 2)
/*
 * sg_hot.bads: the first entry that has never been used, and the number of changes of the list
 */
#define SG_BADS_USED(w)		((u32)(w))
#define SG_BADS_CHANGES(w)	((u32)((w) >> 32))
#define SG_BADS(used, changes)	((u64)(used) | (u64)(changes) << 32)

/**
 * struct sg_sys_copy - a second copy of the words that locate a system inode's pages.
 * @table: its root word. @records: inode file: sg_hot.inodes; others: sg_inode.size.
 * @check: SG_SYS_CHECK(crc32c of the entry's number, as u64, and the two words).
 *
 * The transaction that changes the root word or the number of records also changes the copy. A
 * valid copy that differs therefore means damage, or a writer whose software is too old for copies.
 */
struct sg_sys_copy {
	u64 table;
	u64 records;
	u64 check;
};
#define SG_SYS_CHECK(crc)	((u64)(crc) | 0x59504353ULL << 32)	/* "SCPY" */

/**
 * struct sg_last - the last page.
 */
struct sg_last {
	struct sg_super sb;
	u8 reserved[512];
	struct sg_sys_copy sys[SG_SYS_COUNT];
};

/**
 * struct sg_slot - a system's entry in the mount table.
 */
struct sg_slot {
	u64 state;		/* SG_SLOT_WORD(), SG_SLOT_BY_WORD() */
	u64 heartbeat;		/* changes while the system is live */
	u64 epoch;		/* D7: last epoch acknowledged */
	u64 joined;		/* ns since the Unix epoch, by the system's own clock */
	u8 machine[16];		/* DMI UUID */
	u8 boot[16];		/* boot id */
	char name[64];		/* host name */
	u64 pid;		/* a tool: SG_SLOT_PROCESS(); 0 for a kernel */
	u64 beat_ns;		/* the system's interval between heartbeats */
	/* changes while a guard sees the machine, even if the machine is paused */
	u64 guard;
	u64 named;		/* the incarnation that stored machine, boot, name, pid, ... */
	/* growth: SG_SIZE_WORD(size, incarnation) */
	u64 reach;		/* the bound: the system accepts references below it */
	u64 memory;		/* bytes of memory that it has, from the volume's first byte on */
	u64 cannot;		/* the value of sg_hot.grow for which its memory is too small */
	/* release of its software, for display; the incarnation in `named` stored it, too */
	char version[16];
	u64 hosted;		/* the incarnation that stored host and host_boot */
	u8 host[16];		/* DMI UUID of the host: the machine ends when the host ends, */
	u8 host_boot[16];	/* or when the host no longer has this boot id */
	/* SG_FROZEN(attempt, incarnation) while the system stores nothing; otherwise 0 */
	u64 frozen;
	/*
	 * SG_SLOT_KNOWS(): ro_compat features that its software supports and that may be set later
	 */
	u64 knows;
};
/*
 * A tool's process id, and the inode number of the id's name space (0: not known). Earlier software
 * stores the id alone.
 */
#define SG_SLOT_PROCESS(pid, space) ((u64)(u32)(pid) | (u64)(u32)(space) << 32)
#define SG_SLOT_PID(w)		((u32)(w))
#define SG_SLOT_PID_SPACE(w)	((u32)((w) >> 32))
#define SG_SLOT_KNOWS(features, inc) ((u64)(u32)(features) | (u64)(inc) << 32)
#define SG_SLOT_STATE(w)	((u32)((w) & 0xff))
#define SG_SLOT_INC(w)		((u32)((w) >> 32))	/* incarnation in bits 32-63 */
#define SG_SLOT_WORD(st, inc)	((u64)(st) | (u64)(inc) << 32)
/* SG_SLOT_RECOVERING: the recoverer; slot + 1 in bits 8-15, low half of its incarnation in 16-31 */
#define SG_SLOT_BY(w)		((unsigned int)((w) >> 8 & 0xff) - 1)
#define SG_SLOT_BY_INC(w)	((u16)((w) >> 16))
#define SG_SLOT_BY_WORD(slot, inc) ((u64)((slot) + 1) << 8 | (u64)(u16)(inc) << 16)
/*
 * Any other value counts as SG_SLOT_DEAD. docs/protocol.md says which system may change which
 * state.
 */
enum { SG_SLOT_FREE, SG_SLOT_LIVE, SG_SLOT_DEAD, SG_SLOT_RECOVERING };

/**
 * struct sg_area - one transaction of one system (D8): words to store, and their offsets.
 *
 * Redo log: the system writes and flushes the words, then sets @head, which makes them valid. Then
 * it stores the words in place, flushes them, and clears @head. Only the holder of @lock writes
 * here, so the counters below change without contention, in the transaction itself.
 */
struct sg_word {
	u64 off;		/* volume offset, 8-byte aligned */
	u64 val;
};
#define SG_AREA_WORDS		252
struct sg_area {
	u64 head;		/* 0, or SG_AREA_HEAD: committed */
	u64 crc;		/* crc32c of head and the words that it counts */
	struct sg_lock lock;
	u64 free_pages;		/* sum of all areas + free_base = free pages (mod 2^64) */
	u64 used_inodes;	/* sum over all areas = inodes in use (mod 2^64) */
	u64 free_ino;		/* first of a list of free inode records, or 0 */
	u64 deferred_ino;		/* first of a list of deferred inodes, or 0 */
	struct sg_word word[SG_AREA_WORDS];
};
#define SG_AREA_HEAD(seq, n)	((u64)(seq) << 16 | (n))
#define SG_AREA_COUNT(head)	((unsigned int)((head) & 0xffff))
/*
 * Number of words that are change counters of inodes. They follow the other words, and are odd
 * while those are stored.
 */
#define SG_AREA_SEQS(n)		((u64)(n) << 48)
#define SG_AREA_SEQ_COUNT(head)	((unsigned int)((head) >> 48 & 0xff))
/*
 * Number of words of the log, which follows the change counters: bytes to store into a file
 * (docs/atomic-data.md). The log is a struct sg_log_head, its pieces, and the bytes of those pieces
 * whose bytes are not elsewhere.
 */
#define SG_AREA_LOGS(n)		((u64)(n) << 56)
#define SG_AREA_LOG_COUNT(head)	((unsigned int)((head) >> 56))

/* The largest atomic write, in bytes. A longer write is cut at multiples of this size. */
#define SG_ATOMIC_MAX		65536u
#define SG_ATOMIC_PAGES		(SG_ATOMIC_MAX / 4096 + 1)	/* that one atomic write touches */
#define SG_LOG_PIECES		(2 * SG_ATOMIC_PAGES)

/**
 * struct sg_log_head - the head of a log: it names the file whose bytes are logged.
 * @ino: low 40: inode number; 40-47: number of pieces.
 * @generation: of the inode. The record also has the inode's change counter.
 */
struct sg_log_head {
	u64 ino;
	u64 generation;
};
#define SG_LOG_INO(w)		((w) & ((1ULL << 40) - 1))
#define SG_LOG_COUNT(w)		((unsigned int)((w) >> 40) & 0xff)

/**
 * struct sg_log_piece - a piece: bytes that are adjacent both in the file and in the log.
 * @pos: position in the file.
 * @len: low 32: number of bytes; high 32: crc32c of them.
 * @from: volume offset of the bytes. Their pages are free, and the system has locked the chunk of
 * these pages. 0: the bytes are in the record, behind all pieces and behind the bytes of earlier
 * pieces.
 */
struct sg_log_piece {
	u64 pos;
	u64 len;
	u64 from;
	u64 reserved;
};
#define SG_LOG_LEN(w)		((u32)(w))
#define SG_LOG_CRC(w)		((u32)((w) >> 32))
#define SG_LOG_WORD(len, crc)	((u64)(u32)(len) | (u64)(crc) << 32)

/*
 * Lists of deferred inodes for which a slot's ledger has no room. A record on a list names the next
 * record. It stays on the list, whether in use or free, until the system that has the list removes
 * it. A place on a list is therefore only a hint, like a deferred inode in a ledger.
 */
#define SG_DEFERRED_LINK_SET		(1ULL << 63)
#define SG_DEFERRED_LINK_INO(w)		((w) & ((1ULL << 40) - 1))
/* 0: this is the last record */
#define SG_DEFERRED_LINK(next)		(SG_DEFERRED_LINK_SET | (u64)(next))

/*
 * The ledger: a slot's deferred frees. It is a chain of pages of words. Word 0 of a page is the
 * offset of the next page, or 0. Any other word that is 0 is unused. The transaction that takes
 * pages or an inode out of use writes a word; the transaction that frees them clears it. After
 * recovery another system takes over the deferred frees of a dead slot.
 *
 *   bits 0-39   page number, or inode number
 *   bits 40-42  kind
 *   bits 43-52  run: pages - 1; table: first entry that is not yet freed
 *   bits 53-63  epoch in which it was taken out of use, modulo 2^11 (D7)
 */
#define SG_LEDGER_WORDS		512
#define SG_LEDGER_VALUE(w)	((w) & ((1ULL << 40) - 1))
#define SG_LEDGER_KIND(w)		((unsigned int)((w) >> 40) & 7)
#define SG_LEDGER_COUNT(w)	((unsigned int)((w) >> 43) & 0x3ff)
#define SG_LEDGER_EPOCH(w)	((unsigned int)((w) >> 53))
#define SG_LEDGER_ENTRY(kind, value, count, epoch) \
	((u64)(value) | (u64)(kind) << 40 | (u64)(count) << 43 | (u64)((epoch) & 0x7ff) << 53)
enum {
	SG_LEDGER_RUN = 0,	/* pages to free */
	/* 1..4: a cut-off file table of that level, with everything below it */
	SG_LEDGER_TABLE = 1,
	SG_LEDGER_INODE = 5,	/* an inode without links, or with SG_FL_CUTTING */
	SG_LEDGER_DIR = 6,	/* a cut-off directory index page, with everything below it */
	SG_LEDGER_XATTR = 7,	/* a cut-off xattr blob, by its head page */
};

/**
 * struct sg_chunk - 2 MiB of the volume: 512 pages, with one bit for each page (1 = in use).
 * @use: a hint: SG_CHUNK_LEAF if the chunk's first page was taken for a part of 2 MiB of a file.
 */
struct sg_chunk {
	struct sg_lock lock;
	u64 use;
	u64 reserved[5];
	u64 map[8];
};
enum { SG_CHUNK_ANY, SG_CHUNK_LEAF };

/*
 * Directories: an extendible hash. The index is a tree of pages of 512 words, indexed by 9 bits of
 * the name's hash per level, most significant first; its leaves are buckets. A bucket of local
 * depth d stands for d bits: all index entries that begin with these bits name it. See
 * docs/directories.md.
 */
#define SG_DIR_KEY_BITS		63	/* hash and tie-break; also the readdir cookie */
#define SG_DIR_TIE_BITS		8
/* low bits of an index word: the kind of page that it names */
#define SG_DIR_ENTRY_BUCKET	1ULL
#define SG_DIR_ENTRY_INDEX	2ULL
#define SG_DIR_ENTRY_KIND	3ULL
#define SG_DIR_LEVELS_MAX	6	/* 54 bits of hash */
#define SG_DIR_SPAN_BITS	7
/* maximum number of words that name one bucket */
#define SG_DIR_SPAN_MAX		(1u << SG_DIR_SPAN_BITS)

/* Root word of a directory (sg_inode.table): offset of bucket or index page | entry kind. */

/**
 * struct sg_bucket - names whose keys share the first @depth bits.
 *
 * @slot is a small open-addressed table (home position: low bits of the key's hash part). A system
 * first writes a dirent into unused bytes of @data. A store of its slot word makes the dirent
 * exist; a store of SG_BUCKET_TOMB removes it. A rename onto a dirent changes only sg_dirent.ref.
 */
#define SG_BUCKET_MAGIC		0x544b4253u	/* "SBKT" */
#define SG_BUCKET_SLOTS		128
#define SG_BUCKET_DATA		3008
struct sg_bucket {
	u64 head;		/* low 32: SG_BUCKET_MAGIC; high 32: depth */
	u64 dir;		/* inode number of the directory */
	u64 prefix;		/* the first depth bits of its keys, left-aligned in 63 bits */
	u64 fill;		/* low 16: used bytes of data; 16-31: live names; 32-47: tombs */
	u64 reserved[4];
	u64 slot[SG_BUCKET_SLOTS];
	u8 data[SG_BUCKET_DATA];
};
#define SG_BUCKET_TOMB		1ULL
/* slot word: low 12: offset of the dirent in the page; 12-63: low 52 bits of its key */
#define SG_BUCKET_OFF(w)	((unsigned int)((w) & 0xfff))
#define SG_BUCKET_WORD(key, off) ((u64)(key) << 12 | (off))
#define SG_FILL(bytes, live, tombs) ((u64)(bytes) | (u64)(live) << 16 | (u64)(tombs) << 32)

/**
 * struct sg_dirent - a name; 8-byte aligned in sg_bucket.data.
 * @key: 55 bits of name hash << SG_DIR_TIE_BITS | tie-break; unique in the directory; 63 bits.
 * @ref: low 40: inode number; 40-47: length of the name; 48-51: file type (as S_IFMT >> 12).
 */
struct sg_dirent {
	u64 key;
	u64 ref;
	u8 name[];
};
#define SG_REF_INO(r)		((r) & ((1ULL << 40) - 1))
#define SG_REF_LEN(r)		((unsigned int)((r) >> 40) & 0xff)
#define SG_REF_TYPE(r)		((unsigned int)((r) >> 48) & 0xf)
#define SG_REF(ino, len, type)	((u64)(ino) | (u64)(len) << 40 | (u64)(type) << 48)

/**
 * struct sg_xattr_head - all extended attributes of an inode. They are never changed in place, only
 * replaced together.
 *
 * A payload of up to SG_XATTR_INLINE bytes follows the head in its page; a larger one fills the
 * pages that @page names. The payload is a sequence of struct sg_xattr_entry.
 */
#define SG_XATTR_MAGIC		0x54415853u	/* "SXAT" */
#define SG_XATTR_VALUE_MAX	65536
#define SG_XATTR_TOTAL_MAX	(1u << 20)
struct sg_xattr_head {
	u32 magic;
	u32 crc;		/* crc32c of ino, size and payload */
	u64 ino;
	u64 size;		/* bytes of payload */
	u64 pages;		/* further pages; 0 if the payload follows */
	u64 reserved[4];
	u64 page[504];		/* offsets; or the payload itself */
};
#define SG_XATTR_INLINE		(SG_PAGE - 64)

struct sg_xattr_entry {		/* 8-byte aligned; the next one follows the padded value */
	u32 value_len;
	u8 space;		/* SG_XATTR_USER... */
	u8 name_len;		/* without prefix */
	u16 reserved;
	u8 name[];		/* the value follows without padding */
};
enum { SG_XATTR_USER = 1, SG_XATTR_TRUSTED, SG_XATTR_SECURITY, SG_XATTR_ACL_ACCESS,
	SG_XATTR_ACL_DEFAULT };

/*
 * Locks of users (docs/protocol.md, section 6): the file SG_SYS_LOCKS. A file's locks are in the
 * chain to which its inode number hashes. Chain c is pages c, c + SG_USERLOCK_CHAINS, ... up to the
 * first one that does not exist. All records are volatile: those of a system that has ended have no
 * meaning.
 */
#define SG_USERLOCK_CHAINS	128u
#define SG_USERLOCK_CHAIN_PAGES	256u	/* at most */
#define SG_USERLOCK_RECORDS	63u	/* per page */

/**
 * struct sg_userlock_record - a lock, or a request that waits for one.
 * @head: 0: unused; otherwise SG_USERLOCK_HEAD(): kind, state and system.
 * @owner: the process or open file of that system that holds or waits.
 * @who: low 32: generation of the inode; high 32: process id, for display.
 * @start: first byte. @last: last byte.
 * @ticket: of a request: its turn, in order of arrival.
 */
struct sg_userlock_record {
	u64 head;
	u64 owner;
	u64 ino;
	u64 who;
	u64 start;
	u64 last;
	u64 ticket;
	u64 reserved;
};
#define SG_USERLOCK_HEAD(what, slot, inc) ((u64)(what) | (u64)(slot) << 8 | (u64)(inc) << 32)
#define SG_USERLOCK_WHAT(h)	((unsigned int)((h) & 0xff))
#define SG_USERLOCK_SLOT(h)	((unsigned int)((h) >> 8) & 0xff)
#define SG_USERLOCK_INC(h)	((u32)((h) >> 32))
/* SG_USERLOCK_HEAD(): @what is the kind and two flags */
enum { SG_USERLOCK_POSIX = 1, SG_USERLOCK_OFD = 2, SG_USERLOCK_FLOCK = 3 };
#define SG_USERLOCK_KIND(h)	((unsigned int)((h) & 3))
#define SG_USERLOCK_EXCLUSIVE	(1u << 2)	/* exclusive; without this flag: shared */
/* a waiting request; without this flag: a held lock */
#define SG_USERLOCK_WAITING	(1u << 3)
#define SG_USERLOCK_KNOWN	0xfu

struct sg_userlock_page {
	struct sg_lock lock;	/* of the chain; in its first page */
	struct sg_lock circle;	/* of searches for deadlocks; in page 0 */
	u64 ticket;		/* the last ticket assigned; in the chain's first page */
	/* number of waiting POSIX requests in the chain; also in the first page; a hint */
	u64 waiting;
	u64 reserved[2];
	struct sg_userlock_record record[SG_USERLOCK_RECORDS];
};

/*
 * Shared semaphores (docs/semaphores.md): the file SG_SYS_SEMS. The file has these pages; most are
 * holes:
 *
 *   records   chain c is pages c, c + SG_SEM_CHAINS, ...: objects whose name hashes to c
 *   words     two pages per record: the page that processes map, and one that they must not map
 *   members   of each slot: owners of locks
 *   bells     a cache line per slot
 *   rings     SG_RING_PAGES_MAX pages per record: the data of a ring
 *
 * Records change in transactions, under the lock of the system inode. Its sg_inode.special is the
 * last serial number assigned. The first cache line of a record is permanent; the rest of the
 * record and all other pages are volatile.
 */
#define SG_SEM_CHAINS		16384u
#define SG_SEM_CHAIN_PAGES	16u
#define SG_SEM_RECORDS		7u	/* per page, behind its head */
#define SG_SEM_WORDS_PAGE	(1ULL << 22)
#define SG_SEM_MEMBERS_PAGE	(1ULL << 23)
#define SG_SEM_MEMBERS		65536u	/* per slot */
#define SG_SEM_PER_PAGE		64u	/* members */
#define SG_SEM_BELLS_PAGE	(SG_SEM_MEMBERS_PAGE + SG_SLOTS * SG_SEM_MEMBERS / SG_SEM_PER_PAGE)
#define SG_RING_PAGES_MAX	(SG_RING_MAX >> SG_PAGE_SHIFT)
#define SG_SEM_RINGS_PAGE	(1ULL << 35)	/* up to the end of a table of four levels */
#define SG_SEM_PAGES		(SG_SEM_RINGS_PAGE + \
				 (u64)SG_SEM_CHAINS * SG_SEM_CHAIN_PAGES * 8 * SG_RING_PAGES_MAX)
#define SG_SEM_NAME_MAX		255u

/**
 * struct sg_sem_waits - the systems that wait for a word
 * @waiters: one bit for each slot in which a thread sleeps. @last: the slot that had the last turn.
 */
struct sg_sem_waits {
	u64 waiters;
	u64 last;
};

/**
 * struct sg_sem_record - an object.
 * @head: 0: unused; otherwise SG_SEM_HEAD().
 * @hash: of the name. @owner: low 32: uid; high 32: gid.
 * @mode: low 32: permissions; high 32: length of the name.
 * @initial: semaphore: its first value; barrier: the number of threads that meet; ring: bytes.
 * @users: one bit for each slot that has the object open. @unclean: one of these systems died.
 * @lock: of barriers.
 * @waits: of the word. @part: of a ring's other parts, SG_RING_TAIL and SG_RING_ROOM.
 * @words: the object's words, if they have no page of their own.
 */
struct sg_sem_record {
	u64 head;
	u64 hash;
	u64 owner;
	u64 mode;
	u64 created;		/* ns since the Unix epoch */
	u64 initial;
	u64 users;
	u64 unclean;
	struct sg_lock lock;
	struct sg_sem_waits waits;
	struct sg_sem_waits part[SG_RING_PARTS - 1];
	struct sg_semwords words;
	u64 reserved2[8];
	u8 name[256];
};
#define SG_SEM_HEAD(type, life, flags, serial) ((u64)(type) | (u64)(life) << 8 | \
	(u64)(flags) << 16 | (u64)(serial) << 32)
#define SG_SEM_TYPE(h)		((unsigned int)((h) & 0xff))
#define SG_SEM_LIFE(h)		((unsigned int)((h) >> 8 & 0xff))
#define SG_SEM_FLAGS(h)		((unsigned int)((h) >> 16 & 0xffff))
/* distinguishes this object from others that use or used this record */
#define SG_SEM_SERIAL(h)	((u32)((h) >> 32))
/* flag: the object has users, but no name any more */
#define SG_SEM_REMOVED		(1u << 15)
/* The object exists until it is removed by name, or until its last user closes it. */
enum { SG_SEM_PERSISTENT, SG_SEM_LAST_USER, SG_SEM_LIVES };

struct sg_sem_page {
	u64 reserved[64];
	struct sg_sem_record record[SG_SEM_RECORDS];
};

/**
 * struct sg_sem_side - a page of a reader-writer lock, barrier or ring, beside its page of words
 * @own: own[i] is the owner of cell i of the page of words: SG_LOCK_WORD(), or 0 for none.
 *
 * A ring counts in SG_RING_LOST_AT the claims that ended with their readers.
 *
 * A barrier has only the systems' cells. This page counts its arrivals, and has the number of the
 * phase.
 */
struct sg_sem_side {
	u64 own[SG_SEM_CELLS];
};
#define SG_RING_LOST_AT		0u
#define SG_SEM_PHASE_AT		128u	/* + slot */
#define SG_SEM_COUNT_AT		192u

/**
 * struct sg_sem_member - a thread that can own locks.
 * @id: low 32: generation; high 32: incarnation of the system; 0: unused.
 * @given: the last generation that was assigned. @who: low 32: process; high 32: thread.
 */
struct sg_sem_member {
	u64 id;
	u64 given;
	u64 who;
	u64 since;		/* ns since the Unix epoch */
	u8 comm[16];
	u64 reserved[2];
};

struct sg_sem_bell {
	u64 rung;		/* grows by 1 if a thread of that slot may have to act */
	u64 reserved[7];
};

#ifdef __KERNEL__
#define SG_FORMAT_ASSERT(x)	static_assert(x)
#else
#define SG_FORMAT_ASSERT(x)	_Static_assert(x, #x)
#endif

SG_FORMAT_ASSERT(sizeof(struct sg_super) == 512);
SG_FORMAT_ASSERT(offsetof(struct sg_super, phys) == 120);
SG_FORMAT_ASSERT(sizeof(struct sg_inode) == SG_INODE_SIZE);
SG_FORMAT_ASSERT(offsetof(struct sg_inode, mtime) == 64);
SG_FORMAT_ASSERT(offsetof(struct sg_inode, tail) == 192);
SG_FORMAT_ASSERT(offsetof(struct sg_hot, bads) == 192);
SG_FORMAT_ASSERT(offsetof(struct sg_hot, sys) == 1024);
SG_FORMAT_ASSERT(offsetof(struct sg_hot, doorbell) == 2048);
SG_FORMAT_ASSERT(sizeof(struct sg_hot) <= SG_PAGE);
SG_FORMAT_ASSERT(offsetof(struct sg_last, sys) == 1024);
SG_FORMAT_ASSERT(sizeof(struct sg_last) <= SG_PAGE);
SG_FORMAT_ASSERT(sizeof(struct sg_slot) == 256);
SG_FORMAT_ASSERT(sizeof(struct sg_area) == SG_PAGE);
SG_FORMAT_ASSERT(sizeof(struct sg_log_head) == sizeof(struct sg_word));
SG_FORMAT_ASSERT(sizeof(struct sg_log_piece) == 2 * sizeof(struct sg_word));
SG_FORMAT_ASSERT(sizeof(struct sg_bucket) == SG_PAGE);
SG_FORMAT_ASSERT(offsetof(struct sg_bucket, data) == 1088);
SG_FORMAT_ASSERT(sizeof(struct sg_xattr_head) == SG_PAGE);
SG_FORMAT_ASSERT(sizeof(struct sg_xattr_entry) == 8);
SG_FORMAT_ASSERT(sizeof(struct sg_chunk) == 128);
SG_FORMAT_ASSERT(offsetof(struct sg_chunk, map) == 64);
SG_FORMAT_ASSERT(sizeof(struct sg_userlock_record) == 64);
SG_FORMAT_ASSERT(sizeof(struct sg_userlock_page) == SG_PAGE);
SG_FORMAT_ASSERT(sizeof(struct sg_semwords) == 64);
SG_FORMAT_ASSERT(offsetof(struct sg_sem_record, words) == 128);
SG_FORMAT_ASSERT(SG_SEM_PAGES == 1ULL << 36);
SG_FORMAT_ASSERT(sizeof(struct sg_sem_record) == 512);
SG_FORMAT_ASSERT(sizeof(struct sg_sem_page) == SG_PAGE);
SG_FORMAT_ASSERT(sizeof(struct sg_sem_side) == SG_PAGE);
SG_FORMAT_ASSERT(sizeof(struct sg_sem_member) * SG_SEM_PER_PAGE == SG_PAGE);
SG_FORMAT_ASSERT(sizeof(struct sg_sem_bell) * SG_SLOTS == SG_PAGE);

#endif
