// SPDX-License-Identifier: Apache-2.0
/* The volume of a path, and the calling thread's identity there. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include "lib.h"

#define FS_MAGIC	0x53544152	/* format.h: "STAR" */

/* --- the volume of a path --------------------------------------------------------------------- */

/* Replaces "\040" with a space, in place. */
static void unescape(char *text)
{
	char *to = text;
	unsigned int c;

	for (; *text; text++) {
		if (*text == '\\' && sscanf(text + 1, "%3o", &c) == 1) {
			*to++ = (char)c;
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = 0;
}

/* "ID PARENT MAJOR:MINOR ROOT WHERE ...". A bind mount of a part of the volume has another root. */
static bool is_mount(const char *line, char where[PATH_MAX])
{
	char root[3];

	if (!strstr(line, " - stargatefs ") ||
	    sscanf(line, "%*u %*u %*u:%*u %2s %4095s", root, where) != 2 || strcmp(root, "/"))
		return false;
	unescape(where);
	return true;
}

static int first_volume(char root[PATH_MAX])
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	bool found = false;
	char *line = NULL;
	size_t room = 0;

	while (f && !found && getline(&line, &room, f) > 0)
		found = is_mount(line, root);
	free(line);
	if (f)
		fclose(f);
	return found ? 0 : ENODEV;
}

/* Goes up to the root of the file system. */
static int root_of(const char *path, char root[PATH_MAX])
{
	struct stat here, up;
	struct statfs fs;
	char *slash;

	if (!realpath(path, root) || statfs(root, &fs) || stat(root, &here))
		return errno == ENOENT || errno == ENOTDIR ? ENODEV : errno;
	if (fs.f_type != FS_MAGIC)
		return ENODEV;
	while (root[1]) {
		char was[PATH_MAX];

		strcpy(was, root);
		slash = strrchr(root, '/');
		slash[slash == root] = 0;
		if (stat(root, &up) || up.st_dev != here.st_dev) {
			strcpy(root, was);
			break;
		}
	}
	return 0;
}

void sgl_close(int fd)
{
	SGL_UNCANCELLED;

	close(fd);
}

int sgl_open_volume(const char *path, bool look, int *fd)
{
	SGL_UNCANCELLED;
	char root[PATH_MAX], file[PATH_MAX + sizeof(SG_SEM_FILE) + 1];
	int err = path ? root_of(path, root) : first_volume(root);

	if (err)
		return err;
	snprintf(file, sizeof(file), "%s/%s", root, SG_SEM_FILE);
	*fd = open(file, (look ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	if (*fd >= 0)
		return 0;
	return errno == ENOENT ? EXDEV : errno;
}

/* --- the thread's identity -------------------------------------------------------------------- */

/*
 * A thread keeps its name in a volume while the volume is mounted here, and thus while a handle
 * exists. A child process has another name, and no mappings of words.
 */
__thread struct sgl_mine sgl_mine __attribute__((tls_model("initial-exec")));
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct stargate_sem *handles;
static u64 last_volume;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
	struct stargate_sem *s;

	for (s = handles; s; s = s->after)
		s->page = s->cell = NULL;
	sgl_mine.volume = 0;
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

int sgl_add(struct stargate_sem *s)
{
	struct stat mine, other;
	struct stargate_sem *o;

	pthread_once(&once, watch_forks);
	if (fstat(s->fd, &mine))
		return errno;
	pthread_mutex_lock(&lock);
	for (o = handles; o; o = o->after)
		if (!fstat(o->fd, &other) && other.st_dev == mine.st_dev)
			break;
	s->volume = o ? o->volume : ++last_volume;
	s->after = handles;
	if (handles)
		handles->before = s;
	handles = s;
	pthread_mutex_unlock(&lock);
	return 0;
}

void sgl_remove(struct stargate_sem *s)
{
	pthread_mutex_lock(&lock);
	if (s->before)
		s->before->after = s->after;
	else
		handles = s->after;
	if (s->after)
		s->after->before = s->before;
	pthread_mutex_unlock(&lock);
}

u64 sgl_me_slow(const struct stargate_sem *s)
{
	u64 me;

	if (ioctl(s->fd, SG_IOC_SEM_ME, &me))
		return 0;
	sgl_mine = (struct sgl_mine){ s->volume, me };
	return me;
}

int sgl_ask_part(const struct stargate_sem *s, unsigned int op, unsigned int flags, u64 *value,
		 u64 until)
{
	struct sg_ioc_sem_op o = { .op = op, .flags = flags, .until = until, .value = *value };
	int err = ioctl(s->fd, SG_IOC_SEM_OP, &o) ? errno : 0;

	*value = o.value;
	return err;
}

int sgl_ask(const struct stargate_sem *s, unsigned int op, u64 *value, u64 until)
{
	return sgl_ask_part(s, op, 0, value, until);
}

static bool can_be_at_once(unsigned int op)
{
	return op == SG_SEM_OP_LOCK || op == SG_SEM_OP_UNLOCK || op == SG_SEM_OP_WAIT ||
	       op == SG_SEM_OP_POST;
}

/* The library has already tried the mapped words. A kernel without this call refuses it. */
int sgl_do(const struct stargate_sem *s, unsigned int op, u64 until)
{
	u64 value = 0;

	if (!s->page && can_be_at_once(op) && !posix_fadvise(s->fd, 0, 0, SG_SEM_AT_ONCE + (int)op))
		return 0;
	return sgl_ask(s, op, &value, until);
}
