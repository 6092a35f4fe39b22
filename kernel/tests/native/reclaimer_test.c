// SPDX-License-Identifier: Apache-2.0
/*
 * One thread slowly reclaims the pages that a file has freed; another thread queries the free
 * space. Deferred frees already count as free (D7). Users see this after they remove a file, while
 * the system does its periodic work.
 */
#define _GNU_SOURCE
#include <semaphore.h>
#include <sys/stat.h>
#include <unistd.h>
#include "test.h"

#define PAGES	100
#define SLOW_US	20000

static struct tvol t;
static pthread_t reclaimer;
static sem_t at_it;

/* The engine calls this function between the choice of deferred frees and their reclaim. */
static void quiesce(struct sg_vol *v)
{
	(void)v;
	if (!pthread_equal(pthread_self(), reclaimer))
		return;
	sem_post(&at_it);
	usleep(SLOW_US);
}

static void *reclaim(void *arg)
{
	(void)arg;
	reclaimer = pthread_self();
	CHECK_OK(sg_reclaim(&t.v, ~0u));
	return NULL;
}

static u64 free_pages(void)
{
	struct sg_statfs st;

	CHECK_OK(sg_statfs(&t.v, &st));
	return st.free_pages;
}

int main(void)
{
	u64 turn, turns = test_amount(5, 20, 1000), before;
	struct sg_iref file;
	pthread_t id;

	sem_init(&at_it, 0, 0);
	tvol_make(&t, 16 << 20);
	t.v.quiesce = quiesce;
	file = test_create(&t.v, &t.root, "file", S_IFREG | 0600);
	before = free_pages();
	for (turn = 0; turn < turns; turn++) {
		test_fill(&t.v, &file, 0, PAGES * SG_PAGE);
		CHECK(before - PAGES - free_pages() < 8);	/* tables take less than 8 pages */
		CHECK_OK(sg_resize(&t.v, &file, 0, 1));
		CHECK_OK(pthread_create(&id, NULL, reclaim, NULL));
		sem_wait(&at_it);
		CHECK_EQ(free_pages(), before);
		CHECK_OK(pthread_join(id, NULL));
	}
	test_clean(t.mem, t.size);
	tvol_drop(&t);
	return test_done();
}
