// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel threads that hold locks. Each is a separate owner. A lock that a thread still holds at its
 * end has a dead owner, like a lock of a process's thread.
 */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "su.h"

#define WAIT_MS		60000
#define THREADS_MAX	16

/* --- a thread that holds a lock --------------------------------------------------------------- */

struct su_holder {
	struct stargate_sem *sem;
	struct task_struct *task;
	struct completion tried;
	bool write, unlock;
	u64 ms;
	int err;
};

static int hold(void *arg)
{
	struct su_holder *h = arg;

	h->err = su_do(h->sem, h->write ? SG_SEM_OP_WRITE : SG_SEM_OP_LOCK, h->ms, 0);
	complete(&h->tried);
	set_current_state(TASK_INTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_INTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
	if (!h->unlock)
		return 0;
	return su_do(h->sem, h->write ? SG_SEM_OP_WRITE_END : SG_SEM_OP_UNLOCK, 0, 0);
}

struct su_holder *su_hold(struct stargate_sem *sem, bool write, u64 ms)
{
	struct su_holder *h = kzalloc(sizeof(*h), GFP_KERNEL);
	int err;

	if (!h)
		return ERR_PTR(-ENOMEM);
	h->sem = sem;
	h->write = write;
	h->ms = ms;
	init_completion(&h->tried);
	h->task = kthread_run(hold, h, "sem_user-hold");
	err = PTR_ERR_OR_ZERO(h->task);
	if (!err) {
		wait_for_completion(&h->tried);
		err = h->err;
		if (!err)
			return h;
		kthread_stop(h->task);
	}
	kfree(h);
	return ERR_PTR(err);
}

int su_let_go(struct su_holder *h, bool unlock)
{
	int err;

	h->unlock = unlock;
	err = kthread_stop(h->task);
	kfree(h);
	return err;
}

/* --- threads that count ----------------------------------------------------------------------- */

struct counter {
	struct stargate_sem *sem;
	struct file *file;
	struct completion *done;
	u64 rounds;
	int err;
};

static int get(struct file *file, u64 words[2])
{
	loff_t pos = 0;
	ssize_t n = kernel_read(file, words, 16, &pos);

	return n == 16 ? 0 : n < 0 ? (int)n : -ENODATA;
}

static int put(struct file *file, u64 word, loff_t pos)
{
	ssize_t n = kernel_write(file, &word, 8, &pos);

	return n == 8 ? 0 : n < 0 ? (int)n : -EIO;
}

/*
 * Adds 1 to both words. The caller holds the lock, so the words are equal unless another thread
 * also has it.
 */
static int count_both(struct file *file)
{
	u64 words[2];
	int err = get(file, words);

	if (!err && words[0] != words[1])
		err = -EILSEQ;
	return err ?: put(file, words[0] + 1, 0) ?: put(file, words[1] + 1, 8);
}

static int count_one(struct counter *c)
{
	int err = su_do(c->sem, SG_SEM_OP_LOCK, WAIT_MS, 0), unlocked;

	if (err)
		return err;
	err = count_both(c->file);
	unlocked = su_do(c->sem, SG_SEM_OP_UNLOCK, 0, 0);
	return err ?: unlocked;
}

static int count(void *arg)
{
	struct counter *c = arg;
	u64 i;

	for (i = 0; i < c->rounds && !c->err; i++)
		c->err = count_one(c);
	complete(c->done);
	return 0;
}

int su_count(struct stargate_sem *sem, unsigned int threads, u64 rounds, const char *path)
{
	struct file *file = filp_open(path, O_RDWR, 0);
	DECLARE_COMPLETION_ONSTACK(done);
	struct counter *c;
	unsigned int i, started = 0;
	int err = 0;

	if (IS_ERR(file))
		return PTR_ERR(file);
	threads = clamp(threads, 1U, (unsigned int)THREADS_MAX);
	c = kcalloc(threads, sizeof(*c), GFP_KERNEL);
	if (!c)
		err = -ENOMEM;
	for (i = 0; i < threads && !err; i++) {
		struct task_struct *task;

		c[i] = (struct counter){ .sem = sem, .file = file, .done = &done,
					 .rounds = rounds };
		task = kthread_run(count, &c[i], "sem_user-%u", i);
		err = PTR_ERR_OR_ZERO(task);
		started += !err;
	}
	for (i = 0; i < started; i++)
		wait_for_completion(&done);
	for (i = 0; i < started && !err; i++)
		err = c[i].err;
	kfree(c);
	filp_close(file, NULL);
	return err;
}
