// SPDX-License-Identifier: Apache-2.0
/*
 * Past defects. Each case repeats the store that caused the defect, at the same load of the engine.
 */
#include <sys/stat.h>
#include "hostile.h"

#define S	1000000000ULL

static struct sg_vol v;

static struct sg_iref inode(const char *name)
{
	struct sg_iref root;

	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	return test_lookup(&v, &root, name);
}

static void set(u64 off, u64 val)
{
	__atomic_store_n((u64 *)(volume + off), val, __ATOMIC_RELAXED);
}

/* Joins. Lapses of the fences by earlier cases are over, because they would delay each reclaim. */
static void join_alone(struct sg_vol *v)
{
	CHECK_OK(host_join(v, true));
	set(SG_HOT(lapsed), 0);
}

static u64 slot_off(unsigned int slot, u64 field)
{
	return victim.sb.slot_off + slot * sizeof(struct sg_slot) + field;
}

/* --- a word that changes between two loads ---------------------------------------------------- */

static struct {
	u64 off, val, loads, from;
} fickle;

/* Makes the word have the value @val from load number @from on (the first is 1). */
static void change_later(u64 off)
{
	if (off == fickle.off && ++fickle.loads >= fickle.from)
		set(off, fickle.val);
}

static void at_load(u64 off, u64 from, u64 val)
{
	fickle.off = off;
	fickle.from = from;
	fickle.val = val;
	fickle.loads = 0;
	hook_load = change_later;
}

/*
 * The engine loads a record's head several times. Meanwhile the head changes: its new value counts
 * more change counters than words.
 */
static void replay_head(u64 from)
{
	struct sg_area *a = (void *)(volume + victim.sb.journal_off);

	a->head = SG_AREA_HEAD(1, 1);
	a->word[0] = (struct sg_word){ SG_HOT(error_ino), 7 };
	attack_mend(victim.sb.journal_off);
	at_load(victim.sb.journal_off, from, SG_AREA_HEAD(1, 1) | SG_AREA_SEQS(255));
	join_alone(&v);
	CHECK(fickle.loads);
	hook_load = NULL;
	CHECK_EQ(sg_get(&v, SG_HOT(error_ino)), from > 1 ? 7 : 0);
	sg_leave(&v);
}

static void case_replay_head(void)
{
	u64 from;

	for (from = 1; from < 5; from++) {
		volume_reset();
		replay_head(from);
	}
}

/* The count of inodes is large, then larger than possible. A loop over all inodes still ends. */
static void case_holdings(void)
{
	static struct sg_holding all[SG_SLOTS];

	join_alone(&v);
	at_load(SG_HOT(inodes), 2, 1ULL << 40);
	sg_holdings(&v, all);
	CHECK(fickle.loads);
	hook_load = NULL;
	sg_leave(&v);
}

/* --- names and owners of semaphores ----------------------------------------------------------- */

static bool emit(void *ctx, const char *name, u32 len, const struct sg_sem_stat *st)
{
	unsigned int *n = ctx;

	CHECK(len && ((const u8 *)name < volume || (const u8 *)name >= volume + H_ROOM));
	CHECK(st->slot >= -1 && st->slot < (int)SG_SLOTS && st->type < SG_SEM_KINDS);
	++*n;
	return true;
}

/*
 * The mutex is reset, and locked by another system, between the check of the owner and the release.
 */
static void case_sem_unlock(void)
{
	struct sg_sem_new new = { .type = SG_SEM_MUTEX, .mode = 0600 };
	const u64 other = SG_SEMW_ID(9, 77, 5);
	static struct sg_sem_caller c;
	struct sg_sem sem;
	u64 word;

	join_alone(&v);
	CHECK_OK(sg_sem_enter(&v, 1, 2, "case", &c));
	CHECK_OK(sg_sem_create(&v, "mine", 4, &new, true, false, &sem));
	CHECK_OK(sg_sem_lock(&v, &sem, &c, 0));
	word = sem.words + offsetof(struct sg_semwords, word);
	at_load(word, 2, other);
	CHECK_EQ(sg_sem_unlock(&v, &sem, &c), -EPERM);
	hook_load = NULL;
	CHECK_EQ(sg_get(&v, word), other);
	set(word, 0);
	sg_sem_exit(&v, &c);
	sg_sem_close(&v, &sem);
	sg_leave(&v);
}

/* Objects are reset by force, and taken by another system, during an operation on them. */
static struct {
	u64 at, word, word_val, more_val, cell;
} reset;

static void reset_at(u64 off)
{
	if (off != reset.at || (reset.cell && !*(u64 *)(volume + reset.cell)))
		return;
	hook_load = NULL;
	set(reset.word, reset.word_val);
	set(reset.word + 8, reset.more_val);
	if (reset.cell)
		set(reset.cell, 0);
}

static void expect_reset(u64 at, const struct sg_sem *sem, u64 word, u64 more)
{
	reset.at = at;
	reset.word = sem->words + offsetof(struct sg_semwords, word);
	reset.word_val = word;
	reset.more_val = more;
	reset.cell = 0;
	hook_load = reset_at;
}

static void is_now(u64 word, u64 more)
{
	CHECK(!hook_load);
	CHECK_EQ(sg_get(&v, reset.word), word);
	CHECK_EQ(sg_get(&v, reset.word + 8), more);
	set(reset.word, 0);
	set(reset.word + 8, 0);
}

static void mutex_reset(struct sg_sem_caller *c, struct sg_sem_caller *other)
{
	struct sg_sem_new new = { .type = SG_SEM_MUTEX, .flags = SG_SEM_RECURSIVE, .mode = 0600 };
	struct sg_sem sem;
	u64 more;

	CHECK_OK(sg_sem_create(&v, "again", 5, &new, true, false, &sem));
	more = sem.words + offsetof(struct sg_semwords, more);
	CHECK_OK(sg_sem_lock(&v, &sem, c, 0));
	expect_reset(more, &sem, other->me, 0);
	CHECK_EQ(sg_sem_lock(&v, &sem, c, 0), -EAGAIN);
	is_now(other->me, 0);
	CHECK_OK(sg_sem_lock(&v, &sem, c, 0));
	CHECK_OK(sg_sem_lock(&v, &sem, c, 0));
	expect_reset(more, &sem, other->me, 3);
	CHECK_EQ(sg_sem_unlock(&v, &sem, c), -EPERM);
	is_now(other->me, 3);
	set(reset.word, c->me | SG_SEMW_DIED);
	expect_reset(slot_off((unsigned int)v.slot, offsetof(struct sg_slot, state)), &sem,
		     other->me | SG_SEMW_DIED, 0);
	CHECK_EQ(sg_sem_consistent(&v, &sem, c), -EPERM);
	is_now(other->me | SG_SEMW_DIED, 0);
	sg_sem_close(&v, &sem);
}

/* A reader withdraws because a writer waits. The reader's cell has been cleared meanwhile. */
static void readers_reset(struct sg_sem_caller *c, struct sg_sem_caller *other)
{
	struct sg_sem_new new = { .type = SG_SEM_RWLOCK, .mode = 0600 };
	struct sg_sem sem;

	CHECK_OK(sg_sem_create(&v, "reads", 5, &new, true, false, &sem));
	expect_reset(sem.words + offsetof(struct sg_semwords, word), &sem, other->me, 0);
	reset.cell = sem.words + 8 * sem.cell;
	CHECK_EQ(sg_sem_read_lock(&v, &sem, c, 0), -EAGAIN);
	CHECK_EQ(sg_get(&v, reset.cell), 0);
	is_now(other->me, 0);
	sg_sem_close(&v, &sem);
}

static void case_sem_reset(void)
{
	static struct sg_sem_caller c, other;

	join_alone(&v);
	CHECK_OK(sg_sem_enter(&v, 1, 2, "case", &c));
	CHECK_OK(sg_sem_enter(&v, 1, 3, "case", &other));
	mutex_reset(&c, &other);
	readers_reset(&c, &other);
	sg_sem_exit(&v, &c);
	sg_sem_exit(&v, &other);
	sg_leave(&v);
}

/* A listing of objects copies each one first, and checks the copy. */
static void case_sem_list(void)
{
	unsigned int n = 0;
	struct sg_sem sem;
	u64 cookie = 0;

	join_alone(&v);
	CHECK_OK(sg_sem_open(&v, "0", 1, SG_SEM_MUTEX, false, &sem));
	set(sem.words, SG_SEMW_ID(125, 1, 1));
	CHECK_OK(sg_sem_list(&v, &cookie, emit, &n));
	CHECK(n);
	set(sem.rec, 0x7f);		/* makes the object's type invalid */
	sg_sem_fstat(&v, &sem, &(struct sg_sem_stat){ 0 });
	sg_sem_close(&v, &sem);
	sg_leave(&v);
}

/* No name of a system can add lines to a log. */
static void case_name(void)
{
	struct sg_slot slot;

	join_alone(&v);
	memset(volume + slot_off(9, offsetof(struct sg_slot, name)), 'x', sizeof(slot.name));
	memcpy(volume + slot_off(9, offsetof(struct sg_slot, name)), "\nBUG: \x1b[2J\x9b", 11);
	CHECK_OK(sg_slot_read(&v, 9, &slot));
	CHECK_EQ(strlen(slot.name), sizeof(slot.name) - 1);
	CHECK(!memcmp(slot.name, "?BUG: ?[2J?x", 12));
	sg_leave(&v);
}

static bool is_used(u64 page)
{
	const struct sg_chunk *c = (void *)(volume + victim.sb.chunk_off);
	u64 in = page >> SG_PAGE_SHIFT & (SG_CHUNK_PAGES - 1);

	return c[page >> SG_CHUNK_SHIFT].map[in / 64] >> in % 64 & 1;
}

/*
 * A deferred free of a directory counts more freed pages than exist. A replayed record changes the
 * deferred free, in a page of which the checker has a copy.
 */
static void case_dir_deferred(void)
{
	const struct sg_check_opts opts = { .mode = SG_CHECK_ONLY };
	struct sg_area *a = (void *)(volume + victim.sb.journal_off);
	struct sg_check_result res;
	u64 page = H_SIZE - 2 * SG_PAGE;

	while (is_used(page))
		page -= SG_PAGE;
	a->head = SG_AREA_HEAD(1, 1);
	a->word[0] = (struct sg_word){ page + 8, 7 };
	attack_mend(victim.sb.journal_off);
	set(victim.sb.ledger_off + 40 * SG_PAGE + 8,
	    SG_LEDGER_ENTRY(SG_LEDGER_DIR, page >> SG_PAGE_SHIFT, 1023, 0));
	CHECK_OK(sg_check(volume, H_ROOM, &opts, &res));
	CHECK(res.found);
}

/*
 * A table that has just been filled does not exist any more when the engine examines it for a large
 * leaf.
 */
static void case_merge(void)
{
	static const u64 later[] = { 0, SG_PTE_TABLE, ~0ULL };
	static u8 buf[SG_PAGE];
	struct sg_iref dir, f;
	unsigned int i, from;
	u64 root;

	for (i = 0; i < 3; i++) {
		for (from = 1; from < 12; from++) {
			volume_reset();
			join_alone(&v);
			dir = inode("dir");
			f = test_lookup(&v, &dir, "large");
			CHECK_EQ(sg_root_kind(&v, sg_iget(&v, &f, table), &root), SG_ENTRY_TABLE);
			at_load(root + 8, from, later[i]);
			sg_write(&v, &f, 2 * SG_CHUNK - SG_PAGE, buf, SG_PAGE, 1);
			hook_load = NULL;
			sg_leave(&v);
		}
	}
}

/*
 * A collapse counts entries; when it builds the table, it finds different entries, although the
 * change counter is the same. The collapse stores only into pages that it has allocated.
 */
static void case_more_than_counted(void)
{
	u64 from, page, taller, i;
	struct sg_iref f;
	u8 first[SG_PAGE];

	for (from = 1; from < 24; from++) {
		volume_reset();
		join_alone(&v);
		f = inode("table");
		memcpy(first, volume, SG_PAGE);
		for (page = H_SIZE - 2 * SG_PAGE; is_used(page); page -= SG_PAGE)
			;
		taller = SG_ROOT((victim.sb.phys + page) | SG_PTE_TABLE, 2);
		for (i = 0; i < SG_TABLE_ENTRIES; i++)
			set(page + 8 * i, i && i < 4 ? (victim.sb.phys + H_SIZE / 2) | SG_PTE_LEAF_HUGE : 0);
		set(page - SG_PAGE, (victim.sb.phys + H_SIZE / 2) | SG_PTE_LEAF);
		set(page - SG_PAGE + 8, (victim.sb.phys + H_SIZE / 2 + SG_PAGE) | SG_PTE_LEAF);
		for (i = 2; i < SG_TABLE_ENTRIES; i++)
			set(page - SG_PAGE + 8 * i, 0);
		set(SG_IOFF(&f, table), SG_ROOT((victim.sb.phys + page - SG_PAGE) | SG_PTE_TABLE, 1));
		set(SG_IOFF(&f, size), 5 * SG_CHUNK);
		at_load(SG_IOFF(&f, table), from, taller);
		sg_collapse(&v, &f, 4 * SG_CHUNK, SG_PAGE, 1);
		hook_load = NULL;
		CHECK(!memcmp(first, volume, SG_PAGE));
		sg_leave(&v);
	}
}

/* --- numbers ---------------------------------------------------------------------------------- */

/* An impossible file size. A sum with this size would be an unknown error code, or no error. */
static void case_sizes(void)
{
	struct sg_iref f;
	u64 size = 0;

	join_alone(&v);
	f = inode("table");
	set(SG_IOFF(&f, size), 1ULL << 63);
	CHECK_EQ(sg_insert(&v, &f, 0, SG_PAGE, 1), -EUCLEAN);
	CHECK_EQ(sg_append_begin(&v, &f, &size), -EUCLEAN);
	CHECK(!sg_is_locked(&v, SG_IOFF(&f, lock)));
	sg_leave(&v);
}

/* Epochs with the largest possible distances. */
static void case_epochs(void)
{
	join_alone(&v);
	set(slot_off(9, offsetof(struct sg_slot, state)), SG_SLOT_WORD(SG_SLOT_LIVE, 77));
	set(slot_off(9, offsetof(struct sg_slot, epoch)), 1ULL << 63);
	set(SG_HOT(epoch), 5);
	CHECK(sg_maintain(&v) > 0);
	set(SG_HOT(epoch), ~0ULL);
	CHECK(sg_maintain(&v) > 0);
	sg_leave(&v);
}

/* --- loops without end ------------------------------------------------------------------------ */

static u64 loads;

/* Sets the same bits in a word before each load of it. */
static void keep_bits(u64 off)
{
	if (off == fickle.off) {
		set(off, *(u64 *)(volume + off) | fickle.val);
		fickle.loads++;
	}
}

/* Another system begins a truncation again each time it is complete. */
static void case_cut(void)
{
	struct sg_write w;
	struct sg_iref f;
	u64 size;

	join_alone(&v);
	f = inode("table");
	fickle.off = SG_IOFF(&f, genflags);
	fickle.val = (u64)SG_FL_CUTTING << 32;
	hook_load = keep_bits;
	CHECK_EQ(sg_resize(&v, &f, 5000, 1), -EUCLEAN);
	CHECK_EQ(sg_append_begin(&v, &f, &size), -EUCLEAN);
	CHECK_EQ(sg_write_begin(&v, &f, 1 << 20, 5000, 0, &w), -EUCLEAN);
	CHECK_EQ(sg_allocate(&v, &f, 1000, 5), -EUCLEAN);
	hook_load = NULL;
	CHECK(fickle.loads && !sg_is_locked(&v, SG_IOFF(&f, lock)));
	sg_leave(&v);
}

/* Advances a change counter at each load. */
static void never_rests(u64 off)
{
	if (off == fickle.off)
		set(off, *(u64 *)(volume + off) + 2);
	loads++;
}

/* Reads a long attribute during constant changes of other kinds. */
static void read_long(const struct sg_iref *f, int expected)
{
	static char value[SG_XATTR_VALUE_MAX];

	loads = 0;
	hook_load = never_rests;
	CHECK_EQ(sg_xattr_get(&v, f, SG_XATTR_USER, "long", 4, value, sizeof(value)), expected);
	hook_load = NULL;
}

/*
 * An attribute with wrong bytes is read fewer times than a word would be, because the limit is one
 * of time.
 */
static void case_no_rest(void)
{
	static const char value[SG_XATTR_VALUE_MAX];
	struct sg_iref f;

	join_alone(&v);
	f = inode("one");
	CHECK_OK(sg_xattr_set(&v, &f, SG_XATTR_USER, "long", 4, value, sizeof(value), 0, 1));
	fickle.off = SG_IOFF(&f, seq);
	read_long(&f, sizeof(value));
	/* makes the attributes' checksum wrong as well */
	set(sg_iget(&v, &f, xattr), SG_XATTR_MAGIC);
	read_long(&f, -EUCLEAN);
	CHECK(loads > 100000 && loads < 20000000);
	sg_leave(&v);
}

static bool emit_all(void *ctx, const char *name, u32 len, u64 ino, unsigned int type, u64 cookie)
{
	(void)ctx, (void)name, (void)len, (void)ino, (void)type, (void)cookie;
	return true;
}

/* Tests the same for a directory that changes at each read. */
static void case_dir_no_rest(void)
{
	u64 cookie = 0;
	struct sg_iref dir, f;

	join_alone(&v);
	dir = inode("dir");
	fickle.off = SG_IOFF(&dir, seq);
	loads = 0;
	hook_load = never_rests;
	CHECK_EQ(sg_readdir(&v, &dir, &cookie, emit_all, NULL), -EUCLEAN);
	CHECK_EQ(sg_lookup(&v, &dir, "nobody", 6, &f, NULL), -EUCLEAN);
	hook_load = NULL;
	CHECK(loads > 10000 && loads < 20000000);
	sg_leave(&v);
}

#define JUNK_PAGES	48

static void count_load(u64 off)
{
	(void)off;
	loads++;
}

/* Fills the ledger of a free slot with entries without effect. */
static void junk_ledger(unsigned int slot)
{
	u64 page = sg_ledger_off(&v, slot), next = H_SIZE - 2 * SG_PAGE, i, n;

	for (n = 0; n < JUNK_PAGES; n++) {
		for (i = 1; i < SG_LEDGER_WORDS; i++)
			set(page + 8 * i, SG_LEDGER_ENTRY(SG_LEDGER_RUN, i, 0, 0));
		while (is_used(next))
			next -= SG_PAGE;
		set(page, next);
		page = next;
		next -= SG_PAGE;
	}
	set(page, 0);
}

/* Taking over a long ledger takes time, but ends when the system leaves. */
static void case_ledger(void)
{
	join_alone(&v);
	junk_ledger(20);
	loads = 0;
	hook_load = count_load;
	v.hurry = true;
	sg_settle(&v);
	CHECK(loads < 200000);
	v.hurry = false;
	sg_settle(&v);
	hook_load = NULL;
	CHECK(loads > 200000);
	sg_leave(&v);
}

/*
 * The ledger's entry changes, and names a page whose free was not deferred. The engine frees
 * neither page.
 */
static void case_ledger_entry(void)
{
	u64 off, at, word, errors;
	struct sg_tx *tx;
	unsigned int i;

	join_alone(&v);
	tx = sg_tx_begin(&v);
	CHECK_OK(sg_take_page(tx, SG_USE_DATA, &off));
	CHECK_OK(sg_tx_commit(tx));
	tx = sg_tx_begin(&v);
	sg_defer_run(tx, off, 1);
	CHECK_OK(sg_tx_commit(tx));
	for (i = 1, at = 0; i < SG_LEDGER_WORDS && !at; i++) {
		at = sg_ledger_off(&v, (unsigned int)v.slot) + 8 * i;
		word = sg_get(&v, at);
		if (SG_LEDGER_VALUE(word) != off >> SG_PAGE_SHIFT)
			at = 0;
	}
	CHECK(at);
	set(at, word ^ SG_LEDGER_ENTRY(0, 1, 0, 0));
	errors = sg_get(&v, SG_HOT(errors));
	sg_epoch_wait(&v, 100);
	sg_reclaim(&v, ~0u);
	CHECK(sg_get(&v, SG_HOT(errors)) > errors);
	CHECK(is_used(off));
	sg_leave(&v);
}

/* --- several systems at the same time --------------------------------------------------------- */

static u64 turn;

/* Lets another system settle the same ledger at a certain load. */
static void settle_beside(u64 off)
{
	(void)off;
	if (--turn)
		return;
	hook_load = NULL;
	CHECK_OK(sg_ledger_settle_inodes(&v));
}

/*
 * An inode that does not exist has no lock, so two systems may free a ledger's entry for it at the
 * same time.
 */
static void case_reclaimed_twice(void)
{
	unsigned int room;
	struct sg_tx *tx;
	u64 at = 0, deferred;

	join_alone(&v);
	room = sg_ledger_room(&v);
	deferred = sg_ledger_reclaimable(&v);
	do {
		tx = sg_tx_begin(&v);
		sg_defer_free(tx, SG_LEDGER_INODE, sg_get(&v, SG_HOT(inodes)) + 5, 0);
		CHECK_OK(sg_tx_commit(tx));
		turn = ++at;
		hook_load = settle_beside;
		CHECK_OK(sg_ledger_settle_inodes(&v));
		hook_load = NULL;
		CHECK_EQ(sg_ledger_room(&v), room);
		CHECK_EQ(sg_ledger_reclaimable(&v), deferred);
	} while (!turn);
	CHECK(at > 5);
	sg_leave(&v);
}

/* Removes a table that the engine has just stored, before the next load of its entry. */
static void unhook(u64 off)
{
	u64 e = *(u64 *)(volume + off);

	if (off >= 2 * SG_CHUNK && e & 1 && (e & SG_PTE_ADDR) - victim.sb.phys < H_ROOM)
		set(off, 0);
}

static void case_table_gone(void)
{
	struct sg_iref f;
	struct sg_write w;

	join_alone(&v);
	f = inode("one");
	hook_load = unhook;
	CHECK_EQ(sg_write_begin(&v, &f, 1ULL << 40, 10, 0, &w), -EUCLEAN);
	hook_load = NULL;
	sg_leave(&v);
}

static void hold_areas(u64 word)
{
	u64 i;

	for (i = 0; i < victim.sb.areas; i++)
		set(sg_area_off(&v, (unsigned int)v.slot, (unsigned int)i) +
		    offsetof(struct sg_area, lock), word);
}

/* The deferred frees are invalid, and cannot be removed. A reclaim still ends. */
static void case_deferred_stays(void)
{
	u64 areas = (u64)SG_SLOTS * victim.sb.areas;
	struct sg_tx *tx;

	join_alone(&v);
	sg_settle(&v);
	CHECK_EQ(sg_ledger_reclaimable(&v), 0);
	tx = sg_tx_begin(&v);
	sg_defer_free(tx, SG_LEDGER_TABLE, 1ULL << 39, 0);
	CHECK_OK(sg_tx_commit(tx));
	hold_areas(SG_LOCK_WORD(v.slot, v.incarnation));
	set(SG_HOT(bad), SG_BAD(victim.sb.journal_off / SG_PAGE, areas));
	set(SG_HOT(bads), SG_BADS(1, 1));
	sg_settle(&v);
	CHECK_EQ(sg_ledger_reclaimable(&v), 1);
	hold_areas(0);
	set(SG_HOT(bads), SG_BADS(0, 2));
	sg_settle(&v);
	CHECK_EQ(sg_ledger_reclaimable(&v), 0);
	sg_leave(&v);
}

/* --- locks of a system that seems live -------------------------------------------------------- */

static void hold_all(u64 word)
{
	u64 i;

	set(slot_off(9, offsetof(struct sg_slot, state)), SG_SLOT_WORD(SG_SLOT_LIVE, 77));
	hold_areas(word);
	for (i = 0; i < sg_chunks(&v); i++)
		set(sg_chunk_off(&v, i), word);
	for (i = 0; i < 18; i++)
		if (i < 6 || i == 11 || i == 16)
			set(SG_HOT_OFF + i * 8, i & 1 ? 0 : word);
}

/* A leaving system does not wait forever for any lock of a system that only seems live. */
static void case_leave(void)
{
	struct sg_iref root;
	u64 start;

	join_alone(&v);
	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	/* no system has the file open, so it has to be freed */
	CHECK_OK(sg_unlink(&v, &root, "one", 3, 1));
	hold_all(SG_LOCK_WORD(9, 77));
	start = sg_ticks();
	sg_leave(&v);
	CHECK(sg_ticks() - start < 60 * S);
}

static u64 killed_at;

static bool killed(void)
{
	return sg_ticks() > killed_at;
}

/* A thread that waits for a transaction area can be killed, as with any other lock. */
static void case_killed(void)
{
	extern bool (*sg_interrupt_hook)(void);
	struct sg_iref f;

	join_alone(&v);
	f = inode("one");
	hold_all(SG_LOCK_WORD(9, 77));
	killed_at = sg_ticks() + 30 * S;
	sg_interrupt_hook = killed;
	CHECK_EQ(sg_resize(&v, &f, 0, 1), -EINTR);
	CHECK(sg_ticks() - killed_at < 5 * S);
	sg_leave(&v);
}

static struct {
	u64 off;
	unsigned int looks;
} taken;

static void take_later(u64 off)
{
	if (off == taken.off && ++taken.looks == 2) {
		hook_load = NULL;
		set(off, SG_LOCK_WORD(9, 77));
	}
}

/* A leaving system finds an inode unlocked. Then a system that seems live locks the inode. */
static void case_leave_inode(void)
{
	extern bool (*sg_interrupt_hook)(void);
	struct sg_iref root, f;

	join_alone(&v);
	f = inode("one");
	CHECK_OK(sg_iref(&v, SG_INO_ROOT, &root));
	CHECK_OK(sg_unlink(&v, &root, "one", 3, 1));
	set(slot_off(9, offsetof(struct sg_slot, state)), SG_SLOT_WORD(SG_SLOT_LIVE, 77));
	taken.off = SG_IOFF(&f, lock);
	taken.looks = 0;
	hook_load = take_later;
	killed_at = sg_ticks() + 60 * S;
	sg_interrupt_hook = killed;
	sg_leave(&v);
	CHECK_EQ(taken.looks, 2);
	CHECK(sg_ticks() < killed_at);
}

/* A dying process releases a lock in the table of locks, and the call returns. */
static void case_give_back(void)
{
	struct sg_userlock lock = {
		.kind = SG_USERLOCK_POSIX, .exclusive = true, .owner = 1, .last = SG_USERLOCK_MAX,
	};
	struct sg_iref f;
	u64 start, i;

	join_alone(&v);
	f = inode("one");
	CHECK_OK(sg_userlock_set(&v, &f, &lock, NULL, NULL));
	set(slot_off(9, offsetof(struct sg_slot, state)), SG_SLOT_WORD(SG_SLOT_LIVE, 77));
	for (i = 0; i < victim.lock.n; i++)
		set(victim.lock.page[i], SG_LOCK_WORD(9, 77));
	for (i = 0; i < SG_USERLOCK_CHAINS; i++) {
		int err = 0;
		struct sg_userlock_page *p = sg_userlock_page(&v, (unsigned int)i, 0, &err);

		if (p)
			set((u64)((u8 *)p - volume), SG_LOCK_WORD(9, 77));
	}
	lock.brief = true;
	start = sg_ticks();
	CHECK_EQ(sg_userlock_clear(&v, &f, &lock), -EBUSY);
	sg_userlock_clear_later(&v, &f, &lock);
	sg_settle(&v);
	CHECK(sg_ticks() - start < 200 * S);
	sg_leave(&v);
}

static struct {
	u64 word, lock, loads;
} barred;

/* Takes the barrier's lock while the caller waits for other callers, and never releases it. */
static void bar(u64 off)
{
	if (off == barred.word && ++barred.loads > 4)
		set(barred.lock, SG_LOCK_WORD(9, 77));
}

/*
 * A caller whose time limit at a barrier has passed withdraws, even if the barrier's lock is never
 * released.
 */
static void case_barrier(void)
{
	struct sg_sem_new new = { .type = SG_SEM_BARRIER, .mode = 0600, .initial = 2 };
	static struct sg_sem_caller c;
	struct sg_sem sem;
	u64 start;

	join_alone(&v);
	CHECK_OK(sg_sem_enter(&v, 1, 2, "case", &c));
	CHECK_OK(sg_sem_create(&v, "meet", 4, &new, true, false, &sem));
	set(slot_off(9, offsetof(struct sg_slot, state)), SG_SLOT_WORD(SG_SLOT_LIVE, 77));
	barred.word = sem.words + offsetof(struct sg_semwords, word);
	barred.lock = sem.rec + offsetof(struct sg_sem_record, lock);
	barred.loads = 0;
	hook_load = bar;
	start = sg_ticks();
	CHECK_EQ(sg_sem_meet(&v, &sem, &c, start + S), -ETIMEDOUT);
	hook_load = NULL;
	CHECK(barred.loads > 4);
	CHECK(sg_ticks() - start < 200 * S);
	set(barred.lock, 0);
	sg_sem_exit(&v, &c);
	sg_sem_close(&v, &sem);
	sg_leave(&v);
}

/* ---------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*fn)(void);
} cases[] = {
	{ "head of a record", case_replay_head },
	{ "holdings", case_holdings },
	{ "list of semaphores", case_sem_list },
	{ "the release of a mutex", case_sem_unlock },
	{ "semaphores that are reset", case_sem_reset },
	{ "a filled table that disappears", case_merge },
	{ "more entries than counted", case_more_than_counted },
	{ "name", case_name },
	{ "deferred free of a directory", case_dir_deferred },
	{ "sizes", case_sizes },
	{ "leaving while an inode is locked", case_leave_inode },
	{ "epochs", case_epochs },
	{ "leaving", case_leave },
	{ "a killed thread", case_killed },
	{ "release of locks", case_give_back },
	{ "a barrier whose lock is never released", case_barrier },
	{ "a split lock", case_split_lock },
	{ "the end of a lock", case_lock_range },
	{ "a truncation", case_cut },
	{ "a ledger", case_ledger },
	{ "an entry of a ledger", case_ledger_entry },
	{ "a deferred free reclaimed twice", case_reclaimed_twice },
	{ "a deferred free that cannot be removed", case_deferred_stays },
	{ "a table being freed", case_table_gone },
	{ "an inode whose change never ends", case_no_rest },
	{ "a directory whose change never ends", case_dir_no_rest },
	{ "a table that contains itself", case_table_of_itself },
	{ "a cycle of parents", case_parent_circle },
	{ "pages without end", case_allocate },
	{ "a list of bad memory", case_bad_list },
	{ "an entry of the bad memory list that always changes", case_bad_changes },
	{ "no area for a transaction", case_no_place },
	{ "a moved range", case_move_range },
	{ "a split bucket", case_split },
	{ "a removed semaphore that stays", case_sem_over },
};

void cases_run(void)
{
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		test_note("case: %s", cases[i].name);
		step_clock(true);
		volume_reset();
		cases[i].fn();
		hook_load = NULL;
		volume_check_canaries();
		volume_afterwards();
		step_clock(false);
	}
}
