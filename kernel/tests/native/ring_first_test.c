// SPDX-License-Identifier: Apache-2.0
/*
 * The first ring of a volume is made during a growth. The ring needs a bit in the superblocks, and
 * growth writes the superblocks as well.
 */
#include "sem_util.h"

#define SIZE	(32ULL << 20)
#define MEMORY	(64ULL << 20)
#define RING	(64ULL << 10)

static u8 *mem;
static struct tsys grower, maker;
static int made;

static void begin(void)
{
	mem = tsys_volume_in(SIZE, MEMORY);
	tsys_join(&grower, mem, MEMORY, 1);
	tsys_join(&maker, mem, MEMORY, 2);
	tsys_maintain(&grower);
	tsys_maintain(&maker);
}

static void end(void)
{
	tsys_leave(&maker);
	tsys_leave(&grower);
	test_clean(mem, MEMORY);
}

static void *make_ring(void *arg)
{
	struct sg_sem ring;

	(void)arg;
	made = try_create(&maker.v, "ring", new_of(SG_SEM_RING, SG_SEM_MAPPED, RING), true, &ring);
	if (!made)
		sg_sem_close(&maker.v, &ring);
	return NULL;
}

/*
 * At its end, a grower locks the file of the objects. The grower and other callers must get that
 * lock.
 */
static void waits_without_the_file(void)
{
	const struct sg_iref file = sg_sem_file();
	const struct sg_lock *lock;
	pthread_t id;

	begin();
	lock = (void *)(mem + SG_HOT(grow_lock));
	CHECK_OK(sg_lock(&grower.v, SG_HOT(grow_lock)));
	CHECK_OK(pthread_create(&id, NULL, make_ring, NULL));
	tawait(&lock->waiters, 1ULL << maker.v.slot);
	CHECK_OK(sg_lock_for(&grower.v, SG_IOFF(&file, lock), SEC));
	sg_iunlock(&grower.v, &file);
	sg_unlock(&grower.v, SG_HOT(grow_lock));
	CHECK_OK(pthread_join(id, NULL));
	CHECK_OK(made);
	end();
	test_unmap(mem, MEMORY);
}

static bool is_filled(const u8 *page, u8 with)
{
	u64 i;

	for (i = 0; i < SG_PAGE && page[i] == with; i++)
		;
	return i == SG_PAGE;
}

/*
 * The ring's system does not know of the growth yet, but must write the superblocks at their new
 * offsets.
 */
static void follows_the_size(void)
{
	const struct sg_super *first, *backup;
	u8 *was_last;
	u64 size;

	begin();
	tsys_grow(&grower.v, MEMORY - SIZE);
	size = sg_size(&grower.v);
	CHECK_EQ(size, MEMORY);
	first = (void *)mem;
	backup = (void *)(mem + size - SG_PAGE);
	was_last = mem + SIZE - SG_PAGE;
	tsys_rest(&maker);
	maker.v.sb.size = SIZE;
	maker.v.sb.chunks = SIZE / SG_CHUNK;
	memset(was_last, 0x5a, SG_PAGE);	/* the old superblock's page is a free page now */
	make_ring(NULL);
	CHECK_OK(made);
	CHECK_EQ(first->ro_compat, SG_RO_COMPAT_RINGS);
	CHECK_EQ(first->size, size);
	CHECK_EQ(backup->ro_compat, SG_RO_COMPAT_RINGS);
	CHECK_EQ(backup->size, size);
	CHECK(is_filled(was_last, 0x5a));
	end();
	test_unmap(mem, MEMORY);
}

/*
 * A tool opens the volume. Before the tool gets exclusive access, another system makes the first
 * ring.
 */
static void kept_by_tools(void)
{
	const struct sg_super *first, *backup;
	struct sg_identity tool = tsys_identity(9, 1);
	char why[200];
	struct sg_vol v;

	begin();
	first = (void *)mem;
	backup = (void *)(mem + SIZE - SG_PAGE);
	tool.pid = 4711;
	CHECK_OK(sg_open(&v, mem, SIZE, false, NULL));
	make_ring(NULL);
	CHECK_OK(made);
	end();
	CHECK_OK(sg_join_alone(&v, &tool, 20, false));
	CHECK_OK(sg_relabel(&v, NULL, "other", why));
	CHECK(!strcmp(first->label, "other"));
	CHECK_EQ(first->ro_compat, SG_RO_COMPAT_RINGS);
	CHECK_EQ(backup->ro_compat, SG_RO_COMPAT_RINGS);
	sg_leave(&v);
	test_clean(mem, MEMORY);
	test_unmap(mem, MEMORY);
}

int main(void)
{
	test_within(120, "the first ring");
	waits_without_the_file();
	follows_the_size();
	kept_by_tools();
	test_within(0, NULL);
	return test_done();
}
