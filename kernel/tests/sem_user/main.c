// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/sem_user, for tests. Each open file of it has one object. A written line is an operation on
 * that object, by the writing thread. The write returns the operation's error.
 *
 *   open KIND NAME		opens an object
 *   make KIND NAME VALUE	creates it
 *   lock MS, unlock, consistent, wait MS, post, read MS, read-end, write MS, write-end, advance N,
 *   await N MS, meet MS	sg_ioc_sem_op; MS 0: does not wait
 *   hold MS, hold-write MS	a kernel thread locks it, and keeps it
 *   free, abandon		the thread unlocks it and ends, or just ends
 *   count THREADS N FILE	kernel threads lock it N times each, to count in two words of FILE
 */
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "su.h"

#define LINE_MAX	512

static char *volume = "/mnt/sg";
module_param(volume, charp, 0444);
MODULE_PARM_DESC(volume, "mount point of the volume");

static struct proc_dir_entry *entry;

/**
 * struct session - the state of an open file
 * @lock: held during changes of the session, but not by operations that wait. @sem: does not change
 * after it is set.
 */
struct session {
	struct mutex lock;
	struct stargate_sem *sem;
	struct su_holder *holder;
};

/* --- objects ---------------------------------------------------------------------------------- */

static const char *const kinds[SG_SEM_TYPES] = {
	[0] = "any", [SG_SEM_MUTEX] = "mutex", [SG_SEM_COUNT] = "semaphore",
	[SG_SEM_RWLOCK] = "rwlock", [SG_SEM_COND] = "condition", [SG_SEM_BARRIER] = "barrier",
	[SG_SEM_EVENT] = "event",
};

static int open_object(struct session *s, const char *kind, const char *name, bool make, u64 value)
{
	struct sg_ioc_sem_open *how;
	struct stargate_sem *sem;
	int type = match_string(kinds, ARRAY_SIZE(kinds), kind), err;

	if (type < 0 || s->sem)
		return type < 0 ? -EINVAL : -EBUSY;
	how = kzalloc(sizeof(*how), GFP_KERNEL);
	if (!how)
		return -ENOMEM;
	strscpy(how->name, name, sizeof(how->name));
	how->type = type;
	how->how = SG_SEM_BY_KERNEL;
	if (make) {
		how->how |= SG_SEM_CREATE;
		how->flags = SG_SEM_MAPPED;
		how->mode = 0600;
		how->initial = value;
	}
	sem = stargate_sem_open(volume, how);
	err = PTR_ERR_OR_ZERO(sem);
	if (!err)
		smp_store_release(&s->sem, sem);
	kfree(how);
	return err;
}

/* --- one operation ---------------------------------------------------------------------------- */

/*
 * @numbers: how many numbers follow the operation's name; of two, the first is the value. @ms: the
 * last number is a time limit.
 */
static const struct operation {
	const char *name;
	u32 op;
	int numbers;
	bool ms;
} operations[] = {
	{ "lock", SG_SEM_OP_LOCK, 1, true },
	{ "unlock", SG_SEM_OP_UNLOCK, 0, false },
	{ "consistent", SG_SEM_OP_CONSISTENT, 0, false },
	{ "wait", SG_SEM_OP_WAIT, 1, true },
	{ "post", SG_SEM_OP_POST, 0, false },
	{ "read", SG_SEM_OP_READ, 1, true },
	{ "read-end", SG_SEM_OP_READ_END, 0, false },
	{ "write", SG_SEM_OP_WRITE, 1, true },
	{ "write-end", SG_SEM_OP_WRITE_END, 0, false },
	{ "advance", SG_SEM_OP_ADVANCE, 1, false },
	{ "await", SG_SEM_OP_AWAIT, 2, true },
	{ "meet", SG_SEM_OP_MEET, 1, true },
};

static int operate(struct stargate_sem *sem, int argc, char **argv)
{
	u64 number[2] = { 0 };
	unsigned int i;
	int n;

	for (i = 0; i < ARRAY_SIZE(operations); i++)
		if (!strcmp(argv[0], operations[i].name))
			break;
	if (i == ARRAY_SIZE(operations) || argc != operations[i].numbers + 1)
		return -EINVAL;
	for (n = 1; n < argc; n++)
		if (kstrtou64(argv[n], 10, &number[n - 1]))
			return -EINVAL;
	return su_do(sem, operations[i].op, operations[i].ms ? number[argc - 2] : 0, number[0]);
}

/* --- kernel threads --------------------------------------------------------------------------- */

static int hold(struct session *s, const char *ms, bool write)
{
	struct su_holder *h;
	u64 n;

	if (kstrtou64(ms, 10, &n))
		return -EINVAL;
	if (s->holder)
		return -EBUSY;
	h = su_hold(s->sem, write, n);
	if (IS_ERR(h))
		return PTR_ERR(h);
	s->holder = h;
	return 0;
}

static int let_go(struct session *s, bool unlock)
{
	struct su_holder *h = s->holder;

	s->holder = NULL;
	return h ? su_let_go(h, unlock) : -EINVAL;
}

static int count(struct stargate_sem *sem, char **argv)
{
	u64 threads, rounds;

	if (kstrtou64(argv[1], 10, &threads) || kstrtou64(argv[2], 10, &rounds))
		return -EINVAL;
	return su_count(sem, (unsigned int)threads, rounds, argv[3]);
}

/* --- lines ------------------------------------------------------------------------------------ */

static bool is(const char *word, const char *name, int argc, int want)
{
	return argc == want && !strcmp(word, name);
}

/* Runs an operation that changes the session. Returns 1 for any other line. */
static int change(struct session *s, int argc, char **argv)
{
	u64 value;

	if (is(argv[0], "open", argc, 3))
		return open_object(s, argv[1], argv[2], false, 0);
	if (is(argv[0], "make", argc, 4))
		return kstrtou64(argv[3], 10, &value) ? -EINVAL :
		       open_object(s, argv[1], argv[2], true, value);
	if (!s->sem)
		return -ENOTCONN;
	if (is(argv[0], "hold", argc, 2) || is(argv[0], "hold-write", argc, 2))
		return hold(s, argv[1], argv[0][4] == '-');
	if (is(argv[0], "free", argc, 1) || is(argv[0], "abandon", argc, 1))
		return let_go(s, argv[0][0] == 'f');
	return 1;
}

static int run(struct session *s, int argc, char **argv)
{
	int ret;

	mutex_lock(&s->lock);
	ret = change(s, argc, argv);
	mutex_unlock(&s->lock);
	if (ret <= 0)
		return ret;
	if (is(argv[0], "count", argc, 4))
		return count(s->sem, argv);
	return operate(s->sem, argc, argv);
}

static ssize_t write(struct file *file, const char __user *user, size_t len, loff_t *pos)
{
	char *line, **argv;
	int argc, err = -ENOMEM;

	if (!len || len > LINE_MAX)
		return -EINVAL;
	line = memdup_user_nul(user, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	argv = argv_split(GFP_KERNEL, line, &argc);
	if (argv) {
		err = argc ? run(file->private_data, argc, argv) : -EINVAL;
		argv_free(argv);
	}
	kfree(line);
	return err ? err : (ssize_t)len;
}

static int open(struct inode *inode, struct file *file)
{
	struct session *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return -ENOMEM;
	mutex_init(&s->lock);
	file->private_data = s;
	return 0;
}

static int release(struct inode *inode, struct file *file)
{
	struct session *s = file->private_data;

	if (s->holder)
		su_let_go(s->holder, false);
	if (s->sem)
		stargate_sem_close(s->sem);
	kfree(s);
	return 0;
}

static const struct proc_ops operations_of_file = {
	.proc_open	= open,
	.proc_write	= write,
	.proc_release	= release,
	.proc_lseek	= noop_llseek,
};

static int __init su_init(void)
{
	entry = proc_create("sem_user", 0600, NULL, &operations_of_file);
	return entry ? 0 : -ENOMEM;
}

static void __exit su_exit(void)
{
	proc_remove(entry);
}

module_init(su_init);
module_exit(su_exit);
MODULE_DESCRIPTION("Shared semaphores of StargateFS, used by another module");
MODULE_LICENSE("GPL");
