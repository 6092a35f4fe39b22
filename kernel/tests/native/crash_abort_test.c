// SPDX-License-Identifier: Apache-2.0
/*
 * A write into fresh pages is aborted. Its stores into them, which may bypass the cache, must be
 * complete before it unlocks their chunk: the next system that locks the chunk gets the same pages.
 */
#include <sys/stat.h>
#include "internal.h"
#include "record.h"
#include "test.h"

int main(void)
{
	struct sg_write w;
	struct sg_iref f;
	struct tvol t;
	struct rec r;
	u64 i, lock, stored = 0, fenced = 0, unlocked = 0;

	tvol_make(&t, TEST_SMALL);
	f = test_create(&t.v, &t.root, "f", S_IFREG | 0600);
	rec_init(&r, t.mem, TEST_SMALL, true);
	rec_to(&r);
	CHECK_OK(sg_write_begin(&t.v, &f, 0, 3 * SG_PAGE, 0, &w));
	CHECK(w.fresh);
	sg_os_write(sg_at(&t.v, w.off), "some bytes that nobody will ever see", 36);
	CHECK_OK(sg_write_end(&t.v, &f, &w, 0, 1));
	rec_to(NULL);
	lock = sg_chunk_off(&t.v, w.off >> SG_CHUNK_SHIFT) + offsetof(struct sg_chunk, lock.word);
	for (i = 0; i < r.n; i++) {
		const struct rec_event *e = &r.ev[i];

		if (e->kind == REC_STORE && e->off >= w.off && e->off < w.off + w.len)
			stored = i + 1;
		if (e->kind == REC_FENCE)
			fenced = i + 1;
		if (stored && e->kind == REC_STORE && e->off == lock && !unlocked)
			unlocked = fenced > stored ? 1 : 2;
	}
	CHECK(stored);
	CHECK_EQ(unlocked, 1);
	rec_free(&r);
	tvol_drop(&t);
	return test_done();
}
