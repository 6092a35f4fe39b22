// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that own locks of the volume. Each is one of the engine's callers, registered at its
 * first request. A thread ends in many ways, and few of them notify a module. So whenever a
 * descriptor is closed, the module searches for threads that have ended, or that execute another
 * program. All descriptors are closed when a process ends. The thread that polls the bell also
 * searches from time to time.
 */
#include <linux/kthread.h>
#include <linux/sched.h>

#include "sem_priv.h"

/* time between searches while rings are possible; otherwise a second */
#define REAP_MS		250

/**
 * struct sgfs_sem_thread - a thread that can own locks
 * @pid: the thread; @exec: the number of the program that it runs.
 */
struct sgfs_sem_thread {
	struct hlist_node node;
	struct pid *pid;
	u64 exec;
	struct sg_sem_caller caller;
};

static struct hlist_head *sgfs_bucket(struct sgfs_sems *s, const struct pid *pid)
{
	return &s->threads[hash_ptr(pid, SGFS_SEM_THREAD_BITS)];
}

static bool sgfs_is_gone(const struct sgfs_sem_thread *t)
{
	const struct task_struct *task;
	bool gone;

	rcu_read_lock();
	task = pid_task(t->pid, PIDTYPE_PID);
	gone = !task || READ_ONCE(task->flags) & PF_EXITING ||
	       READ_ONCE(task->self_exec_id) != t->exec;
	rcu_read_unlock();
	return gone;
}

/* Frees a thread that is in no list any more. One store releases all its locks. */
static void sgfs_sem_thread_forget(struct sgfs *fs, struct sgfs_sem_thread *t)
{
	sg_sem_exit(&fs->vol, &t->caller);
	put_pid(t->pid);
	kfree(t);
}

static void sgfs_forget_some(struct sgfs *fs, bool all)
{
	struct sgfs_sems *s = &fs->sems;
	struct sgfs_sem_thread *t;
	struct hlist_node *next;
	HLIST_HEAD(gone);
	unsigned int i;

	spin_lock(&s->lock);
	for (i = 0; i < ARRAY_SIZE(s->threads); i++)
		hlist_for_each_entry_safe(t, next, &s->threads[i], node)
			if (all || sgfs_is_gone(t)) {
				hlist_del(&t->node);
				hlist_add_head(&t->node, &gone);
			}
	spin_unlock(&s->lock);
	hlist_for_each_entry_safe(t, next, &gone, node)
		sgfs_sem_thread_forget(fs, t);
}

void sgfs_sem_reap(struct sgfs *fs)
{
	sgfs_forget_some(fs, false);
}

/*
 * Finds the thread with its current program. Its state from an earlier program is dead, and may be
 * freed at any time.
 */
static struct sgfs_sem_thread *sgfs_sem_thread_find(struct sgfs_sems *s)
{
	struct pid *pid = task_pid(current);
	struct sgfs_sem_thread *t;

	spin_lock(&s->lock);
	hlist_for_each_entry(t, sgfs_bucket(s, pid), node)
		if (t->pid == pid && t->exec == current->self_exec_id)
			break;
	spin_unlock(&s->lock);
	/* this belongs to the calling thread, so it remains while the thread runs */
	return t;
}

static struct sgfs_sem_thread *sgfs_introduce(struct sgfs *fs)
{
	struct sgfs_sem_thread *t = kzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	char comm[TASK_COMM_LEN];
	int err;

	if (!t)
		return ERR_PTR(-ENOMEM);
	get_task_comm(comm, current);
	err = sg_sem_enter_as_is(&fs->vol, task_tgid_nr(current), task_pid_nr(current), comm,
				 &t->caller);
	if (err == -EAGAIN) {	/* the call needs a page, or all numbers are taken */
		sb_start_write(fs->sb);
		err = sg_sem_enter(&fs->vol, task_tgid_nr(current), task_pid_nr(current), comm,
				   &t->caller);
		sb_end_write(fs->sb);
	}
	if (err) {
		kfree(t);
		return ERR_PTR(err);
	}
	t->pid = get_pid(task_pid(current));
	t->exec = current->self_exec_id;
	spin_lock(&fs->sems.lock);
	hlist_add_head(&t->node, sgfs_bucket(&fs->sems, t->pid));
	spin_unlock(&fs->sems.lock);
	return t;
}

struct sg_sem_caller *sgfs_sem_me(struct sgfs *fs)
{
	struct sgfs_sem_thread *t = sgfs_sem_thread_find(&fs->sems);

	if (!t)
		t = sgfs_introduce(fs);
	return IS_ERR(t) ? ERR_CAST(t) : &t->caller;
}

/* --- listening -------------------------------------------------------------------------------- */

/* Sleep as long as no thread of this system waits; then poll the bell (docs/semaphores.md, 4). */
static int sgfs_listen(void *data)
{
	struct sgfs *fs = data;
	unsigned long due = jiffies;

	while (!READ_ONCE(fs->sems.stop)) {
		sg_sem_poll(&fs->vol);
		if (time_before(jiffies, due))
			continue;
		sgfs_sem_reap(fs);
		due = jiffies + msecs_to_jiffies(REAP_MS);
	}
	set_current_state(TASK_INTERRUPTIBLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_INTERRUPTIBLE);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

int sgfs_sem_listen(struct sgfs *fs)
{
	struct sgfs_sems *s = &fs->sems;
	struct task_struct *task;
	int err = 0;

	if (smp_load_acquire(&s->listener))
		return 0;
	mutex_lock(&s->start);
	if (!s->listener) {
		task = kthread_run(sgfs_listen, fs, "%s-sem", SGFS_NAME);
		err = PTR_ERR_OR_ZERO(task);
		if (!err) {
			sg_sem_poll_begin(&fs->vol, true);
			smp_store_release(&s->listener, task);
		}
	}
	mutex_unlock(&s->start);
	return err;
}

/* --- with the mount --------------------------------------------------------------------------- */

void sgfs_sems_init(struct sgfs *fs)
{
	mutex_init(&fs->sems.start);
	spin_lock_init(&fs->sems.lock);
}

/* Called when no process has the file open any more. */
void sgfs_sems_stop(struct sgfs *fs)
{
	struct sgfs_sems *s = &fs->sems;

	if (s->listener) {
		WRITE_ONCE(s->stop, true);
		sg_sem_poll_begin(&fs->vol, false);
		kthread_stop(s->listener);
		s->listener = NULL;
	}
	sgfs_forget_some(fs, true);
}
