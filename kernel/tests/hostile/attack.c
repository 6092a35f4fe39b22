// SPDX-License-Identifier: Apache-2.0
/*
 * The stores of an attacker that knows the format. The attacker chooses words of structures, and
 * many of its values look valid there.
 */
#include "hostile.h"

enum aim {
	A_SUPER, A_COPY, A_HOT, A_SYS, A_SLOT, A_AREA, A_RECORD, A_LEDGER, A_HINT, A_CHUNK, A_INODE,
	A_TABLE, A_DIR, A_XATTR, A_SEM, A_LOCK, A_ANY, A_AIMS
};

static u64 *word_at(u64 off)
{
	return (u64 *)(volume + (off & ~7ULL) % H_ROOM);
}

static u64 load(u64 off)
{
	return __atomic_load_n(word_at(off), __ATOMIC_RELAXED);
}

static u64 below(struct attacker *a, u64 n)
{
	return rng_below(&a->rng, n);
}

static u64 of_places(struct attacker *a, const struct places *p, unsigned int words)
{
	return p->page[below(a, p->n)] + 8 * below(a, words);
}

/* Chooses a slot, mostly the host's. */
static unsigned int a_slot(struct attacker *a)
{
	if (rng_chance(&a->rng, 60))
		return a->slot;
	return (unsigned int)below(a, rng_chance(&a->rng, 70) ? 3 : SG_SLOTS);
}

static u64 area(struct attacker *a)
{
	return victim.sb.journal_off + (a_slot(a) * victim.sb.areas + below(a, victim.sb.areas)) * SG_PAGE;
}

static u64 place(struct attacker *a, enum aim aim)
{
	switch (aim) {
	case A_SUPER:
		return below(a, 64) * 8 + (rng_chance(&a->rng, 50) ? H_SIZE - SG_PAGE : 0);
	case A_COPY:
		return sg_sys_copy_at(H_SIZE, 0) + below(a, SG_SYS_COUNT * 3) * 8;
	case A_HOT:
		return SG_HOT_OFF + below(a, 21) * 8;
	case A_SYS:
		return SG_HOT(sys) + below(a, SG_SYS_COUNT * 32) * 8;
	case A_SLOT:
		return victim.sb.slot_off + a_slot(a) * sizeof(struct sg_slot) +
		       (rng_chance(&a->rng, 40) ? 0 : below(a, 26) * 8);
	case A_AREA:
		return area(a) + below(a, 7) * 8;
	case A_RECORD:
		return area(a) + below(a, 7 + 2 * rng_size(&a->rng, SG_AREA_WORDS)) * 8;
	case A_LEDGER:
		return victim.sb.ledger_off + a_slot(a) * SG_PAGE + rng_size(&a->rng, 511) * 8;
	case A_HINT:
		return victim.sb.hint_off + below(a, 8) * 8;
	case A_CHUNK:
		return victim.sb.chunk_off + below(a, H_ROOM / SG_CHUNK) * sizeof(struct sg_chunk) +
		       below(a, 16) * 8;
	case A_INODE:
		return of_places(a, &victim.inode, 512);
	case A_TABLE:
		return of_places(a, &victim.table, rng_chance(&a->rng, 60) ? 16 : 512);
	case A_DIR:
		return of_places(a, &victim.dir, 512);
	case A_XATTR:
		return of_places(a, &victim.xattr, 32);
	case A_SEM:
		return of_places(a, &victim.sem, 512);
	case A_LOCK:
		return of_places(a, &victim.lock, 64);
	default:
		return below(a, H_ROOM / 8) * 8;
	}
}

u64 attack_place(struct attacker *a)
{
	return place(a, (enum aim)below(a, A_AIMS)) % H_ROOM & ~7ULL;
}

/* --- values ----------------------------------------------------------------------------------- */

static u64 a_page(struct attacker *a)
{
	const struct places *all[] = { &victim.table, &victim.dir, &victim.xattr, &victim.inode,
				       &victim.sem, &victim.lock };
	const struct places *p = all[below(a, 6)];

	switch (below(a, 6)) {
	case 0:		/* metadata, which is never allocated */
		return below(a, victim.sb.data_off / SG_PAGE) * SG_PAGE;
	case 1:		/* pages at the end of the volume, and behind it */
		return H_SIZE - 2 * SG_PAGE + below(a, 4) * SG_PAGE;
	case 2:
		return H_ROOM - SG_PAGE + below(a, 4) * SG_PAGE;
	case 3:
		return below(a, H_ROOM / SG_PAGE) * SG_PAGE;
	default:
		return p->page[below(a, p->n)];
	}
}

static u32 an_incarnation(struct attacker *a)
{
	return rng_chance(&a->rng, 50) ? a->incarnation : (u32)(victim.incarnation + below(a, 6));
}

static u64 a_lock(struct attacker *a)
{
	static const u64 flags[] = { 0, 0, 0, SG_LOCK_HANDED, SG_LOCK_DOUBT, SG_LOCK_ASKED };
	unsigned int slot = a_slot(a);
	u64 state = load(victim.sb.slot_off + slot * sizeof(struct sg_slot));

	return SG_LOCK_WORD(slot, rng_chance(&a->rng, 70) ? SG_SLOT_INC(state) : an_incarnation(a)) |
	       flags[below(a, 6)];
}

static u64 a_state(struct attacker *a)
{
	return SG_SLOT_WORD(below(a, 5), an_incarnation(a)) |
	       (rng_chance(&a->rng, 40) ? SG_SLOT_BY_WORD(a_slot(a), an_incarnation(a)) : 0);
}

static u64 an_entry(struct attacker *a)
{
	static const u64 flags[] = { SG_PTE_TABLE, SG_PTE_LEAF, SG_PTE_LEAF_HUGE,
		SG_PTE_TABLE | SG_PTE_MOVED };
	u64 off = a_page(a), e = flags[below(a, 4)];

	if (e & SG_PTE_HUGE)
		off &= ~(SG_CHUNK - 1);
	e |= victim.sb.phys + off;
	return rng_chance(&a->rng, 40) ? SG_ROOT(e, below(a, 8)) : e;
}

static u64 a_limit(struct attacker *a)
{
	static const u64 all[] = { 0, 1, ~0ULL, 1ULL << 63, (1ULL << 63) - 1, SG_FILE_MAX, SG_FILE_MAX + 1,
		H_SIZE, H_SIZE - 8, H_SIZE - SG_PAGE, H_ROOM, H_ROOM - 8, 1ULL << 32, (1ULL << 32) - 1,
		1ULL << 52, SG_CHUNK, SG_PAGE, 511, 512, 0xffff };

	return all[below(a, sizeof(all) / sizeof(all[0]))];
}

/* Returns a value that looks valid for some kind of word. */
static u64 fitting(struct attacker *a)
{
	switch (below(a, 11)) {
	case 0:
		return a_lock(a);
	case 1:
		return a_state(a);
	case 2:
		return an_entry(a);
	case 3:
		return a_page(a) | below(a, 4);		/* a word of a directory's index */
	case 4:
		return SG_LEDGER_ENTRY(below(a, 8), a_page(a) >> SG_PAGE_SHIFT, below(a, 0x400), below(a, 4));
	case 5:
		return SG_LEDGER_ENTRY(SG_LEDGER_INODE, below(a, 150), 0, below(a, 4));
	case 6:
		return SG_REF(below(a, 150), below(a, 256), below(a, 16));
	case 7:
		return SG_SIZE_WORD(below(a, 4) ? H_SIZE + below(a, 6) * SG_CHUNK : a_limit(a),
				    an_incarnation(a));
	case 8:
		return SG_AREA_HEAD(1, below(a, 260)) | SG_AREA_SEQS(below(a, 8)) |
		       (below(a, 4) ? 0 : SG_AREA_LOGS(below(a, 256)));
	case 9:
		/* a mode with a link count */
		return (u64)below(a, 5) << 32 | (below(a, 16) << 12 | 0600);
	default:
		return SG_USERLOCK_HEAD(below(a, 32), a_slot(a), an_incarnation(a));
	}
}

u64 attack_value(struct attacker *a, u64 off)
{
	u64 was = load(off), old;

	switch (below(a, 10)) {
	case 0:
		return rng_next(&a->rng);
	case 1:
		return rng_size(&a->rng, 1 << 20);
	case 2:
		return was ^ 1ULL << below(a, 64);
	case 3:
		return load(attack_place(a));
	case 4:
		return was + (below(a, 2) ? 1 : -1ULL) * (1ULL << below(a, 14));
	case 5:
		return was | 1;
	case 6:
		return a_limit(a);
	case 7:
		old = below(a, A_HISTORY);
		return a->old[old].val;
	default:
		return fitting(a);
	}
}

/* --- checksums -------------------------------------------------------------------------------- */

static void mend_super(u64 off)
{
	struct sg_super sb;

	memcpy(&sb, volume + off, sizeof(sb));
	sb.crc = 0;
	sb.crc = sg_crc32c(~0u, &sb, sizeof(sb));
	memcpy(volume + off + offsetof(struct sg_super, crc), &sb.crc, 4);
}

static void mend_record(u64 off)
{
	struct sg_area *a = (void *)(volume + off);
	u64 head = a->head;
	unsigned int n = SG_AREA_COUNT(head);

	if (n <= SG_AREA_WORDS)
		a->crc = sg_crc32c(sg_crc32c(~0u, &head, 8), a->word, n * sizeof(a->word[0]));
}

static void mend_xattr(u64 off)
{
	struct sg_xattr_head h;
	u32 crc;

	memcpy(&h, volume + off, sizeof(h));
	crc = sg_crc32c(sg_crc32c(~0u, &h.ino, 8), &h.size, 8);
	if (h.magic != SG_XATTR_MAGIC || h.pages || h.size > SG_XATTR_INLINE)
		return;
	crc = sg_crc32c(crc, h.page, h.size);
	memcpy(volume + off + offsetof(struct sg_xattr_head, crc), &crc, 4);
}

static void mend_copy(void)
{
	struct sg_sys_copy *copy = (void *)(volume + sg_sys_copy_at(H_SIZE, 0));
	unsigned int i;

	for (i = 0; i < SG_SYS_COUNT; i++)
		copy[i].check = sg_sys_check(i, copy[i].table, copy[i].records);
}

void attack_mend(u64 off)
{
	u64 page = off & ~(SG_PAGE - 1);

	if (!page || page == H_SIZE - SG_PAGE)
		mend_super(page);
	if (page == H_SIZE - SG_PAGE)
		mend_copy();
	else if (page >= victim.sb.journal_off && page < victim.sb.ledger_off)
		mend_record(page);
	else if (page >= victim.sb.data_off)
		mend_xattr(page);
}

/* --- stores ----------------------------------------------------------------------------------- */

static u64 state_off(unsigned int slot)
{
	return victim.sb.slot_off + slot * sizeof(struct sg_slot);
}

void attack_store(struct attacker *a, u64 off, u64 val)
{
	unsigned int i = (unsigned int)(a->stores++ % A_HISTORY);

	if (a->spares && off == state_off(a->slot))
		return;
	a->old[i].off = off;
	a->old[i].val = load(off);
	__atomic_store_n(word_at(off), val, __ATOMIC_RELAXED);
}

/* Adds a word to a record, and makes the record valid, so that replay stores the word. */
static void add_to_record(struct attacker *a)
{
	u64 off = area(a);
	struct sg_area *r = (void *)(volume + off);
	unsigned int n = SG_AREA_COUNT(r->head) % SG_AREA_WORDS;

	r->word[n] = (struct sg_word){ attack_place(a), fitting(a) };
	r->head = SG_AREA_HEAD(1, n + 1) | SG_AREA_SEQS(below(a, 3)) |
		  (below(a, 4) ? 0 : SG_AREA_LOGS(below(a, n + 2)));
	mend_record(off);
}

static void whole_page(struct attacker *a)
{
	u64 to = attack_place(a) & ~(SG_PAGE - 1), from = attack_place(a) & ~(SG_PAGE - 1), i, val;

	if (a->spares && to == (state_off(a->slot) & ~(SG_PAGE - 1)))
		return;
	switch (below(a, 4)) {
	case 0:
		memmove(volume + to, volume + from, SG_PAGE);
		break;
	case 1:
		memset(volume + to, 0, SG_PAGE);
		break;
	case 2:
		rng_fill(&a->rng, volume + to, SG_PAGE);
		break;
	default:
		val = fitting(a);
		for (i = 0; i < SG_PAGE; i += 8)
			attack_store(a, to + i, val);
	}
}

/* Stores many equal words, for example into all locks of a kind, or all slots. */
static void a_row(struct attacker *a)
{
	u64 i, word = rng_chance(&a->rng, 50) ? a_lock(a) : fitting(a);

	switch (below(a, 4)) {
	case 0:		/* the host's transaction areas */
		for (i = 0; i < victim.sb.areas; i++)
			attack_store(a, victim.sb.journal_off + (a->slot * victim.sb.areas + i) * SG_PAGE +
				     offsetof(struct sg_area, lock), word);
		break;
	case 1:		/* chunks */
		for (i = 0; i < H_ROOM / SG_CHUNK; i++)
			attack_store(a, victim.sb.chunk_off + i * sizeof(struct sg_chunk), word);
		break;
	case 2:		/* the state of all slots but the host's */
		for (i = 0; i < SG_SLOTS; i++)
			if (i != a->slot)
				attack_store(a, victim.sb.slot_off + i * sizeof(struct sg_slot), a_state(a));
		break;
	default:	/* inodes: locks, or change counters */
		for (i = 0; i < SG_INODES_PER_PAGE; i++)
			attack_store(a, victim.inode.page[0] + i * SG_INODE_SIZE + (word & 1 ? 0 : 16), word);
	}
}

void attack_once(struct attacker *a)
{
	u64 off = attack_place(a), i, n;

	switch (below(a, 24)) {
	case 0:
		whole_page(a);
		break;
	case 1:
		a_row(a);
		break;
	case 2:
		add_to_record(a);
		break;
	case 3:		/* stores a byte */
		if (a->spares && off == state_off(a->slot))
			break;
		volume[off + below(a, 8)] = (u8)rng_next(&a->rng);
		break;
	case 4:		/* restores a previous value */
		i = below(a, SG_MIN(a->stores, (u64)A_HISTORY));
		if (a->stores)
			attack_store(a, a->old[i].off, a->old[i].val);
		break;
	case 5:		/* stores consecutive words */
		n = 1 + below(a, 8);
		for (i = 0; i < n && off + 8 * i < H_ROOM; i++)
			attack_store(a, off + 8 * i, attack_value(a, off + 8 * i));
		break;
	default:
		attack_store(a, off, attack_value(a, off));
		if (rng_chance(&a->rng, 60))
			attack_mend(off);
	}
}
