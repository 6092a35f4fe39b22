/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the tests of users' locks: systems on one volume, locks made in one line. */
#ifndef SG_USERLOCK_UTIL_H
#define SG_USERLOCK_UTIL_H

#include <sys/stat.h>
#include "internal.h"
#include "test.h"

#define SYSTEMS	3
#define MS	1000000ULL

static struct tvol t;
static struct sg_vol sys[SYSTEMS];
static struct sg_iref file[8];
static u64 seed;

static inline void join(struct sg_vol *v)
{
	CHECK_OK(sg_open(v, t.mem, t.size, false, NULL));
	if (sg_join(v, &test_identity, 0, false))
		test_fail(__FILE__, __LINE__, "cannot join: %s", v->why);
}

static inline void begin(u64 size)
{
	unsigned int i;
	char name[20];

	tvol_make(&t, size);
	for (i = 0; i < SG_ARRAY_SIZE(file); i++) {
		sprintf(name, "file-%u", i);
		file[i] = test_create(&t.v, &t.root, name, S_IFREG | 0600);
	}
	for (i = 0; i < SYSTEMS; i++)
		join(&sys[i]);
}

static inline void end(void)
{
	unsigned int i;

	for (i = 0; i < SYSTEMS; i++)
		sg_leave(&sys[i]);
	tvol_drop(&t);
}

static inline struct sg_userlock lock_of(unsigned int kind, u64 owner, bool exclusive, u64 start,
					 u64 last)
{
	return (struct sg_userlock){ .kind = kind, .owner = owner, .exclusive = exclusive,
		.start = start, .last = last, .pid = (u32)owner + 1000, .slot = -1 };
}

static inline struct sg_userlock whole(unsigned int kind, u64 owner, bool exclusive)
{
	return lock_of(kind, owner, exclusive, 0, SG_USERLOCK_MAX);
}

/* --- the contents of the lock file ------------------------------------------------------------ */

/* Calls @fn for each record in use, valid or not. */
static inline u64 each_record(void (*fn)(void *ctx, struct sg_userlock_record *r), void *ctx)
{
	unsigned int nr, k, i;
	u64 n = 0;
	int err;

	for (nr = 0; nr < SG_USERLOCK_CHAINS; nr++) {
		for (k = 0; k < SG_USERLOCK_CHAIN_PAGES; k++) {
			struct sg_userlock_page *page = sg_userlock_page(&t.v, nr, k, &err);

			CHECK_OK(err);
			if (!page)
				break;
			for (i = 0; i < SG_USERLOCK_RECORDS; i++) {
				if (!sg_load64(&page->record[i].head))
					continue;
				n++;
				if (fn)
					fn(ctx, &page->record[i]);
			}
		}
	}
	return n;
}

/* Returns the chain that the engine uses for locks of inode @ino. */
static inline unsigned int chain_with(u64 ino)
{
	unsigned int nr, k;
	int err;

	for (nr = 0; nr < SG_USERLOCK_CHAINS; nr++) {
		struct sg_userlock_page *page = sg_userlock_page(&t.v, nr, 0, &err);

		for (k = 0; page && k < SG_USERLOCK_RECORDS; k++)
			if (page->record[k].head && page->record[k].ino == ino)
				return nr;
	}
	return SG_USERLOCK_CHAINS;
}

/* --- short forms for the tests ---------------------------------------------------------------- */

static inline int try(unsigned int s, unsigned int f, struct sg_userlock l)
{
	return sg_userlock_set(&sys[s], &file[f], &l, NULL, NULL);
}

static inline int ask(unsigned int s, unsigned int f, struct sg_userlock l,
		      struct sg_userlock_wait *w)
{
	return sg_userlock_set(&sys[s], &file[f], &l, w, NULL);
}

static inline void drop(unsigned int s, unsigned int f, struct sg_userlock l)
{
	CHECK_OK(sg_userlock_clear(&sys[s], &file[f], &l));
}

#define POSIX(owner, exclusive)	whole(SG_USERLOCK_POSIX, owner, exclusive)
#define OFD(owner, exclusive)	whole(SG_USERLOCK_OFD, owner, exclusive)
#define FLOCK(owner, exclusive)	whole(SG_USERLOCK_FLOCK, owner, exclusive)

#endif
