// SPDX-License-Identifier: GPL-2.0
/* Cases with a second thread, on another CPU if there is one. */
#include <linux/cpumask.h>
#include <linux/kthread.h>
#include <linux/random.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "wt.h"

static struct task_struct *start(int (*fn)(void *), void *arg, const char *name)
{
	struct task_struct *t = kthread_create(fn, arg, "wt-%s", name);

	if (!CHECK(!IS_ERR(t)))
		return NULL;
	if (num_online_cpus() > 1)
		kthread_bind(t, cpumask_last(cpu_online_mask));
	wake_up_process(t);
	return t;
}

/* --- hooking and unhooking during reads ----------------------------------------------------- */

struct cycles {
	struct rw_semaphore lock;	/* held for writing while @w changes */
	struct sg_window *w;
	u32 tag;			/* the number in the contents of the hooked file */
	u64 reads, bad;
};

static size_t read_few(struct sg_window *w, u64 pos, u64 *words, size_t len)
{
	struct kvec kv = { .iov_base = words, .iov_len = len };
	struct iov_iter it;

	iov_iter_kvec(&it, ITER_DEST, &kv, 1, len);
	return sg_window_copy_to_iter(w, pos, len, &it);
}

static int cycles_reader(void *arg)
{
	struct cycles *c = arg;
	u64 words[8];

	while (!kthread_should_stop()) {
		u64 pos = get_random_u32() % 64 * SG_PAGE;

		down_read(&c->lock);
		if (c->w) {
			c->reads++;
			if (read_few(c->w, pos, words, sizeof(words)) != sizeof(words) ||
			    !wt_matches(words, pos, sizeof(words), c->tag))
				c->bad++;
		}
		up_read(&c->lock);
		cond_resched();
	}
	return 0;
}

static void cycles_of_height(unsigned int height, unsigned int count)
{
	struct sg_windows *ws = wt_windows(64);
	unsigned int i, bad = 0;
	struct cycles c = { };
	struct task_struct *t;
	struct wt_file f[2];
	u64 p;

	for (i = 0; i < 2; i++) {
		wt_file_init(&f[i], height, 300 + 10 * height + i);
		for (p = 0; p < 64; p++)
			wt_map_fresh(&f[i], p, 1);
	}
	init_rwsem(&c.lock);
	t = ws ? start(cycles_reader, &c, "reader") : NULL;
	for (i = 0; t && (i < count || (c.reads < count / 10 && i < 100 * count)); i++) {
		struct sg_window *w = wt_get(ws, height);
		unsigned int which = get_random_u32() % 2;
		u64 words[8];

		if (!w)
			break;
		CHECK(!sg_window_hook(w, wt_file_root(&f[which])));
		down_write(&c.lock);
		c.w = w;
		c.tag = f[which].tag;
		up_write(&c.lock);
		if (read_few(w, 0, words, sizeof(words)) != sizeof(words) ||
		    !wt_matches(words, 0, sizeof(words), f[which].tag))
			bad++;
		if (i % 4 == 0)
			cond_resched();
		down_write(&c.lock);
		c.w = NULL;
		up_write(&c.lock);
		sg_window_put(w);
	}
	if (t)
		kthread_stop(t);
	pr_info("window_test: %u cycles of height %u, %llu concurrent reads, %llu + %u bad\n", i,
		height, c.reads, c.bad, bad);
	CHECK(!i || c.reads >= count / 10);
	CHECK(!c.bad && !bad);
	sg_windows_destroy(ws);
}

void case_cycles(void)
{
	cycles_of_height(SG_WINDOW_2M, wt_cycles);
	cycles_of_height(SG_WINDOW_1G, wt_cycles);
	cycles_of_height(SG_WINDOW_512G, wt_cycles / 10);
}

/* --- entries that a peer removes during a copy ---------------------------------------------- */

struct torn {
	struct sg_windows *ws;
	struct wt_file *f;
	u64 *phys;
	u64 removed;
};

#define TORN_PAGES	256
#define TORN_ENOUGH	100	/* wanted number of interrupted copies of each kind */

static int torn_peer(void *arg)
{
	struct torn *t = arg;

	while (!kthread_should_stop()) {
		u64 p = get_random_u32() % TORN_PAGES;

		WRITE_ONCE(*wt_entry(t->f, p, 1), 0);
		sg_windows_flush(t->ws);
		t->removed++;
		cond_resched();
		wt_map(t->f, p, t->phys[p], 1);
	}
	return 0;
}

/* Copies all pages, and skips each missing page. Returns the number of missing pages. */
static unsigned int torn_copy(struct sg_window *w, u32 tag, bool write, enum wt_iter kind)
{
	size_t len = TORN_PAGES * SG_PAGE, pos = 0;
	unsigned int missing = 0;

	while (pos < len) {
		size_t done;

		if (write) {
			u64 p;

			for (p = pos / SG_PAGE; p < TORN_PAGES; p++)
				wt_pattern((u64 *)(wt_buf + p * SG_PAGE - pos), tag, p);
			done = wt_write(w, pos, len - pos, kind);
		} else {
			done = wt_read(w, pos, len - pos, kind);
			CHECK(wt_matches(wt_buf, pos, round_down(done, 8), tag));
		}
		CHECK(done <= len - pos);
		pos += done;
		if (pos < len) {
			missing++;
			pos = round_down(pos, SG_PAGE) + SG_PAGE;
		}
	}
	return missing;
}

static void torn_of_height(unsigned int height)
{
	struct wt_file f;
	struct torn t = { .ws = wt_windows(0), .f = &f };
	unsigned int missing[2][WT_ITERS] = { };
	struct task_struct *task;
	struct sg_window *w;
	bool enough = false;
	u64 p;

	t.phys = kcalloc(TORN_PAGES, sizeof(u64), GFP_KERNEL);
	w = t.ws ? wt_get(t.ws, height) : NULL;
	if (!CHECK(t.phys) || !w)
		goto out;
	wt_file_init(&f, height, 400 + height);
	for (p = 0; p < TORN_PAGES; p++) {
		t.phys[p] = wt_fresh(&f, p, 1);
		wt_map(&f, p, t.phys[p], 1);
	}
	CHECK(!sg_window_hook(w, wt_file_root(&f)));
	task = start(torn_peer, &t, "peer");
	for (p = 0; task && !enough && p < 100000; p++) {
		bool write = p % 4 >= 2;

		missing[write][p % 2] += torn_copy(w, f.tag, write, p % 2);
		enough = min(min(missing[0][0], missing[0][1]),
			     min(missing[1][0], missing[1][1])) >= TORN_ENOUGH;
		cond_resched();
	}
	if (task)
		kthread_stop(task);
	pr_info("window_test: height %u: %llu removals, short reads %u + %u, writes %u + %u\n",
		height, t.removed, missing[0][0], missing[0][1], missing[1][0], missing[1][1]);
	CHECK(enough);
	CHECK(!torn_copy(w, f.tag, false, WT_USER));
out:
	sg_window_put(w);
	sg_windows_destroy(t.ws);
	kfree(t.phys);
}

void case_torn(void)
{
	/* This case can only fail by a crash, which does not depend on flushes. */
	if (wt_no_flush)
		return;
	torn_of_height(SG_WINDOW_2M);
	torn_of_height(SG_WINDOW_1G);
	torn_of_height(SG_WINDOW_512G);
}
