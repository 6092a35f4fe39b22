// SPDX-License-Identifier: Apache-2.0
/*
 * A VM that is reverted to a saved state after the volume has changed (loadvm), or that runs twice.
 * A fork saves the state: the child has a copy of private memory, and shares the volume.
 */
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "internal.h"
#include "systems.h"

#define SIZE	TEST_SMALL

static u8 *mem;
static struct tsys a, b;

static void make_name(char name[16], unsigned int i)
{
	snprintf(name, 16, "f%u", i);
}

/* Defers frees of @s. Other files later get these pages. */
static void defer_frees(struct tsys *s)
{
	static u8 buf[4096] = { 1 };
	unsigned int i;
	char name[16];

	for (i = 0; i < 20; i++) {
		struct sg_iref f;

		make_name(name, i);
		f = test_create(&s->v, &s->root, name, S_IFREG | 0600);
		CHECK_EQ(sg_write(&s->v, &f, 0, buf, sizeof(buf), 1), sizeof(buf));
		CHECK_OK(sg_unlink(&s->v, &s->root, name, (u32)strlen(name), 2));
		CHECK_OK(sg_evict(&s->v, &f));
	}
	CHECK(sg_ledger_reclaimable(&s->v));
}

static void maintain_both(unsigned int times)
{
	for (; times; times--) {
		CHECK(sg_maintain(&a.v) >= 0);
		CHECK(sg_maintain(&b.v) >= 0);
		CHECK(sg_reclaim(&a.v, ~0u) >= 0);
	}
}

static void fill(struct tsys *s)
{
	static u8 buf[64 * 4096];
	unsigned int i;
	char name[16];

	for (i = 100; sg_free_pages(&s->v) > 4; i++) {
		struct sg_iref f;

		make_name(name, i);
		f = test_create(&s->v, &s->root, name, S_IFREG | 0600);
		if (sg_write(&s->v, &f, 0, buf, sizeof(buf), 3) != sizeof(buf))
			break;
	}
}

/* Saves the state in a child, which runs @run when the parent sends a byte. */
static pid_t save(void (*run)(void), int *go)
{
	int ends[2];
	pid_t pid;
	char c;

	CHECK(!pipe(ends));
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK_EQ(read(ends[0], &c, 1), 1);
		run();
		_exit(0);
	}
	close(ends[0]);
	*go = ends[1];
	return pid;
}

static void resume(pid_t pid, int go)
{
	int status;

	CHECK_EQ(write(go, "x", 1), 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	close(go);
}

/* The first heartbeat detects the saved state. From then on the system stores nothing. */
static void beats(void)
{
	CHECK(sg_is_ours(&a.v));
	CHECK_EQ(sg_maintain(&a.v), -EIO);
	CHECK(!sg_is_ours(&a.v));
	CHECK_EQ(sg_reclaim(&a.v, ~0u), -EIO);
	sg_leave(&a.v);
}

/*
 * The worst order: the saved state reclaims before its first heartbeat. It must report no damage.
 */
static void reclaims(void)
{
	CHECK_EQ(sg_reclaim(&a.v, ~0u), -EIO);
	CHECK(!sg_is_ours(&a.v));
	sg_abandon(&a.v);
}

static void set_back_after(void (*run)(void))
{
	unsigned int slot;
	pid_t pid;
	u32 inc;
	int go;

	mem = tsys_volume(SIZE);
	tsys_join(&a, mem, SIZE, 1);
	tsys_join(&b, mem, SIZE, 2);
	defer_frees(&a);
	slot = (unsigned int)a.v.slot;
	inc = a.v.incarnation;
	pid = save(run, &go);
	maintain_both(10);
	CHECK_EQ(sg_ledger_reclaimable(&a.v), 0);
	fill(&b);
	resume(pid, go);
	/* only the next mount of its VM fences it */
	CHECK_EQ(tsys_state(&b, slot), SG_SLOT_LIVE);
	sg_abandon(&a.v);
	CHECK_OK(sg_fence_slot(&b.v, slot, inc));
	CHECK(sg_maintain(&b.v) >= 0);
	CHECK_EQ(tsys_state(&b, slot), SG_SLOT_FREE);
	/* errors that the saved state found in its ledger */
	sg_store64(sg_at(&b.v, SG_HOT(errors)), 0);
	tsys_leave(&b);
	test_clean(mem, SIZE);
}

/*
 * The original VM continues, and sends a heartbeat between the copy's end and the copy's unmount.
 * The original stays live.
 */
static int copy_found, original_beat;

static void copied(void)
{
	char c = 0;

	CHECK_EQ(sg_maintain(&a.v), -EIO);
	CHECK_EQ(write(copy_found, &c, 1), 1);
	CHECK_EQ(read(original_beat, &c, 1), 1);
	sg_leave(&a.v);
}

static void runs_twice(void)
{
	int found[2], beat[2], go, status;
	pid_t pid;
	char c = 0;

	mem = tsys_volume(SIZE);
	tsys_join(&a, mem, SIZE, 1);
	CHECK(!pipe(found));
	CHECK(!pipe(beat));
	copy_found = found[1];
	original_beat = beat[0];
	pid = save(copied, &go);
	CHECK(sg_maintain(&a.v) >= 0);
	CHECK_EQ(write(go, "x", 1), 1);
	CHECK_EQ(read(found[0], &c, 1), 1);
	CHECK(sg_maintain(&a.v) >= 0);
	CHECK_EQ(write(beat[1], &c, 1), 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK(sg_maintain(&a.v) >= 0);
	tsys_leave(&a);
	test_clean(mem, SIZE);
}

int main(void)
{
	set_back_after(beats);
	set_back_after(reclaims);
	runs_twice();
	return test_done();
}
