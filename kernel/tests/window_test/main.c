// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the windows on a real kernel, on file tables built manually in a shared range.
 *
 * Loading the module runs the cases; the module loads only if all of them pass. With no_flush=1 the
 * windows omit all flushes, and the cases that detect stale translations must fail. Run the test
 * with and without no_flush=1, to be sure that it can fail.
 */
#include <linux/err.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "window_priv.h"
#include "wt.h"

static unsigned long phys;
module_param(phys, ulong, 0444);
MODULE_PARM_DESC(phys, "physical address of the range; its contents are destroyed");
static unsigned long size;
module_param(size, ulong, 0444);
MODULE_PARM_DESC(size, "size of the range, 64 MiB or more");
static char *only;
module_param(only, charp, 0444);
MODULE_PARM_DESC(only, "run only the case with this name");
bool wt_no_flush;
module_param_named(no_flush, wt_no_flush, bool, 0444);
MODULE_PARM_DESC(no_flush, "omit all flushes");
bool wt_need_512g;
module_param_named(need_512g, wt_need_512g, bool, 0444);
MODULE_PARM_DESC(need_512g, "fail if no window of 512 GiB is possible");
unsigned int wt_cycles = 20000;
module_param_named(cycles, wt_cycles, uint, 0444);
MODULE_PARM_DESC(cycles, "number of times to hook and unhook during reads");

u8 *wt_buf;
static unsigned long user_buf;
static unsigned int checks, failures;

bool wt_check(bool ok, const char *what, const char *func, int line)
{
	checks++;
	if (!ok && failures++ < 20)
		pr_err("window_test: %s:%d: %s\n", func, line, what);
	return ok;
}

struct sg_windows *wt_windows(unsigned int max)
{
	struct sg_windows *ws;

	ws = sg_windows_create(wt_range_phys(), wt_range_size(), wt_range_linear(), max);
	if (!CHECK(!IS_ERR(ws)))
		return NULL;
	ws->no_flush = wt_no_flush;
	return ws;
}

struct sg_window *wt_get(struct sg_windows *ws, unsigned int height)
{
	struct sg_window *w = sg_window_get(ws, height);

	if (!w && height == SG_WINDOW_512G && !wt_need_512g) {
		pr_info_once("window_test: this machine has no window of 512 GiB\n");
		return NULL;
	}
	CHECK(w);
	return w;
}

static void make_iter(struct iov_iter *it, struct kvec *kv, unsigned int dir, size_t len,
		      enum wt_iter kind)
{
	if (kind == WT_USER) {
		iov_iter_ubuf(it, dir, (void __user *)user_buf, len);
		return;
	}
	*kv = (struct kvec) { .iov_base = wt_buf, .iov_len = len };
	iov_iter_kvec(it, dir, kv, 1, len);
}

size_t wt_read(struct sg_window *w, u64 pos, size_t len, enum wt_iter kind)
{
	struct iov_iter it;
	struct kvec kv;
	size_t done;

	memset(wt_buf, 0xee, len);
	make_iter(&it, &kv, ITER_DEST, len, kind);
	done = sg_window_copy_to_iter(w, pos, len, &it);
	if (kind == WT_USER)
		CHECK(!copy_from_user(wt_buf, (void __user *)user_buf, done));
	CHECK(iov_iter_count(&it) == len - done);
	return done;
}

size_t wt_write(struct sg_window *w, u64 pos, size_t len, enum wt_iter kind)
{
	struct iov_iter it;
	struct kvec kv;
	size_t done;

	if (kind == WT_USER)
		CHECK(!copy_to_user((void __user *)user_buf, wt_buf, len));
	make_iter(&it, &kv, ITER_SOURCE, len, kind);
	done = sg_window_copy_from_iter(w, pos, len, &it);
	CHECK(iov_iter_count(&it) == len - done);
	return done;
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "refusals", case_refusals },
	{ "contents", case_contents },
	{ "holes", case_holes },
	{ "growth", case_growth },
	{ "removal", case_removal },
	{ "lost", case_lost },
	{ "read_only", case_read_only },
	{ "no_write", case_no_write },
	{ "pool", case_pool },
	{ "shadow", case_shadow },
	{ "cycles", case_cycles },
	{ "torn", case_torn },
};

static void run_cases(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int before = failures;

		if (only && strcmp(only, cases[i].name))
			continue;
		cases[i].run();
		pr_info("window_test: case %s %s\n", cases[i].name,
			failures == before ? "passed" : "FAILED");
	}
}

static int __init wt_init(void)
{
	int err = -ENOMEM;

	wt_buf = kvmalloc(WT_BUF, GFP_KERNEL);
	user_buf = vm_mmap(NULL, 0, WT_BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (!wt_buf || IS_ERR_VALUE(user_buf))
		goto out;
	err = wt_range_open(phys, size);
	if (err)
		goto out;
	run_cases();
	wt_range_close();
	pr_info("window_test: %u checks, %u failed\n", checks, failures);
	err = failures || !checks ? -EINVAL : 0;
out:
	if (!IS_ERR_VALUE(user_buf))
		vm_munmap(user_buf, WT_BUF);
	kvfree(wt_buf);
	return err;
}

static void __exit wt_exit(void)
{
}

module_init(wt_init);
module_exit(wt_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tests of StargateFS windows");
