// SPDX-License-Identifier: Apache-2.0
/*
 * Acts as a virtual machine for a guard: a process in which systems use volumes. It is not a test
 * itself. guard_test.sh and other scripts (and e2e/bench) start it, and send one command per line:
 *
 *   join VOLUME MACHINE BOOT   adds a system (0, 1, ...) of the machine with this UUID
 *   tool VOLUME                adds a system that is a tool: this process
 *   mkdir N NAME               makes a directory, which needs locks and a transaction
 *   fill N NAME, remove N NAME makes and removes a file of 1 MiB
 *   open N PATH                opens a file until the system leaves
 *   unlink N NAME              removes a name
 *   hand N NAME BLOCK:COUNT:OFFSET
 *                              hands blocks to a reader, e2e/programs/handover.c; two words of the
 *                              volume pass the turns
 *   take N, give N             takes and releases the lock for renaming, which transactions need
 *   hold N NAME, let N NAME    takes and releases the lock of a file
 *   jam N, free N             takes and releases the locks of all chains of users' locks
 *   record N OFFSET VALUE      commits a change, without storing it in place
 *   word N OFFSET              prints a word
 *   still N, go N              stops and continues the heartbeat
 *   leave N, reset N           leaves, or dies; the process continues
 *   exit STATUS                ends the process
 *
 * The answer to each command is one line: "ok", or "error" and a number.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "internal.h"
#include "systems.h"
#include "tool.h"

#define MOST	8

static struct tsys system_of[MOST];
static unsigned int systems;

static void answer(const char *what, int err)
{
	if (err)
		printf("error %s: %s\n", what, strerror(-err));
	else
		printf("ok\n");
	fflush(stdout);
}

static u8 *map_volume(const char *path, u64 *size)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;
	u8 *mem;

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	*size = (u64)st.st_size;
	mem = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return mem == MAP_FAILED ? NULL : mem;
}

static int join(const char *path, const char *machine, unsigned int boot)
{
	struct sg_identity id = tsys_identity(0, boot);
	u8 *mem;
	u64 size;
	int err;

	if (systems == MOST || !parse_uuid(machine, id.machine))
		return -EINVAL;
	mem = map_volume(path, &size);
	if (!mem)
		return -errno;
	snprintf(id.name, sizeof(id.name), "machine-%.8s", machine);
	err = tsys_try(&system_of[systems], mem, size, &id, 300, false);
	if (!err && getenv("MACHINE_NAME")) {	/* a hostile engine's version */
		struct sg_vol *v = &system_of[systems].v;

		snprintf(v->id.name, sizeof(v->id.name), "%s", getenv("MACHINE_NAME"));
		sg_slot_mend(v);
	}
	if (!err)
		tsys_maintain(&system_of[systems++]);
	return err;
}

static int join_as_tool(const char *path)
{
	struct sg_identity id;
	u64 size;
	u8 *mem = systems == MOST ? NULL : map_volume(path, &size);
	int err;

	if (!mem)
		return -EINVAL;
	member_identity(&id);
	err = tsys_try(&system_of[systems], mem, size, &id, 300, false);
	if (!err)
		tsys_maintain(&system_of[systems++]);
	return err;
}

static int make_dir(struct tsys *s, const char *name)
{
	struct sg_new new = { .mode = S_IFDIR | 0755, .now = (s64)sg_now() };
	struct sg_iref ref;

	return sg_create(&s->v, &s->root, name, (u32)strlen(name), &new, &ref);
}

static int fill(struct tsys *s, const char *name)
{
	static const char bytes[1 << 20] = "full";
	struct sg_new new = { .mode = S_IFREG | 0644, .now = (s64)sg_now() };
	struct sg_iref ref;
	int err = sg_create(&s->v, &s->root, name, (u32)strlen(name), &new, &ref);
	s64 n = err ? err : sg_write(&s->v, &ref, 0, bytes, sizeof(bytes), new.now);

	return n == sizeof(bytes) ? 0 : n < 0 ? (int)n : -EIO;
}

static int remove_file(struct tsys *s, const char *name)
{
	struct sg_iref ref;
	int err = sg_lookup(&s->v, &s->root, name, (u32)strlen(name), &ref, NULL);

	if (!err)
		err = sg_unlink(&s->v, &s->root, name, (u32)strlen(name), (s64)sg_now());
	return err ? err : sg_evict(&s->v, &ref);
}

static int hold(struct tsys *s, const char *name, bool on)
{
	struct sg_iref ref;
	int err = sg_lookup(&s->v, &s->root, name, (u32)strlen(name), &ref, NULL);

	if (err)
		return err;
	if (on)
		return sg_ilock(&s->v, &ref);
	sg_iunlock(&s->v, &ref);
	return 0;
}

static int jam(struct tsys *s, bool on)
{
	struct sg_userlock_page *page;
	unsigned int nr;
	int err = 0;

	for (nr = 0; nr < SG_USERLOCK_CHAINS && !err; nr++) {
		page = sg_userlock_page(&s->v, nr, 0, &err);
		if (page && on)
			err = sg_lock(&s->v, (u64)((u8 *)&page->lock - s->v.base));
		else if (page)
			sg_unlock(&s->v, (u64)((u8 *)&page->lock - s->v.base));
	}
	return err;
}

static int open_file(struct tsys *s, const char *path)
{
	struct sg_iref at = s->root;
	int err = 0;
	size_t n;

	for (; *path && !err; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		err = sg_lookup(&s->v, &at, path, (u32)n, &at, NULL);
	}
	return err ? err : sg_open_inode(&s->v, &at, false);
}

#define HAND_PATIENCE	(60 * 1000000000ULL)

static int await_turn(_Atomic s64 *word)
{
	u64 start = sg_ticks();

	while (atomic_load(word) <= 0)
		if (sg_ticks() - start > HAND_PATIENCE)
			return -ETIMEDOUT;
	atomic_fetch_sub(word, 1);
	return 0;
}

/* Hands blocks over like the writer of handover.c, but without a kernel. */
static int hand(struct tsys *s, const char *name, const char *how)
{
	unsigned long long block, count, turns, i;
	static u64 bytes[(1 << 20) / 8];
	_Atomic s64 *full, *empty;
	struct sg_iref ref;
	int err;

	if (sscanf(how, "%llu:%llu:%llu", &block, &count, &turns) != 3 || block > sizeof(bytes) ||
	    block < sizeof(bytes[0]) || turns > s->v.size - SG_PAGE)
		return -EINVAL;
	full = (_Atomic s64 *)(s->v.base + turns);
	empty = full + 8;	/* on a separate cache line */
	err = sg_lookup(&s->v, &s->root, name, (u32)strlen(name), &ref, NULL);
	for (i = 0; i < count && !err; i++) {
		err = await_turn(empty);
		bytes[0] = i;
		if (!err && sg_write(&s->v, &ref, i * block, bytes, block, (s64)sg_now()) != (s64)block)
			err = -EIO;
		atomic_fetch_add(full, 1);
	}
	return err;
}

static void look_at_word(struct tsys *s, u64 off)
{
	printf("ok %llu\n", (unsigned long long)sg_get(&s->v, off));
	fflush(stdout);
}

/* @a, @b: the arguments behind the system's number. */
static int obey(const char *verb, struct tsys *s, const char *a, u64 b)
{
	if (!strcmp(verb, "mkdir"))
		return make_dir(s, a);
	if (!strcmp(verb, "fill"))
		return fill(s, a);
	if (!strcmp(verb, "open"))
		return open_file(s, a);
	if (!strcmp(verb, "unlink"))
		return sg_unlink(&s->v, &s->root, a, (u32)strlen(a), (s64)sg_now());
	if (!strcmp(verb, "remove"))
		return remove_file(s, a);
	if (!strcmp(verb, "hold") || !strcmp(verb, "let"))
		return hold(s, a, *verb == 'h');
	if (!strcmp(verb, "jam") || !strcmp(verb, "free"))
		return jam(s, *verb == 'j');
	if (!strcmp(verb, "take"))
		return sg_lock(&s->v, SG_HOT(rename_lock));
	if (!strcmp(verb, "give"))
		sg_unlock(&s->v, SG_HOT(rename_lock));
	else if (!strcmp(verb, "record"))
		tsys_record(&s->v, (unsigned int)s->v.slot, 0, strtoull(a, NULL, 0), b);
	else if (!strcmp(verb, "still") || !strcmp(verb, "go"))
		tsys_pause(s, *verb == 's');
	else if (!strcmp(verb, "leave"))
		tsys_leave(s);
	else if (!strcmp(verb, "reset"))
		tsys_die(s);
	else
		return -ENOSYS;
	return 0;
}

static void do_line(const char *line)
{
	char verb[16], a[256] = "", b[64] = "", c[64] = "";
	u64 n;

	if (sscanf(line, "%15s %255s %63s %63s", verb, a, b, c) < 2)
		return answer("line", -EINVAL);
	if (!strcmp(verb, "join"))
		return answer(verb, join(a, b, (unsigned int)atoi(c)));
	if (!strcmp(verb, "tool"))
		return answer(verb, join_as_tool(a));
	n = strtoull(a, NULL, 0);
	if (!strcmp(verb, "exit"))
		_exit((int)n);
	if (n >= systems)
		return answer(verb, -ENOENT);
	if (!strcmp(verb, "hand"))
		return answer(verb, hand(&system_of[n], b, c));
	if (!strcmp(verb, "word"))
		return look_at_word(&system_of[n], strtoull(b, NULL, 0));
	answer(verb, obey(verb, &system_of[n], b, strtoull(c, NULL, 0)));
}

static void asked_to_end(int sig)
{
	_exit(sig == SIGTERM ? 42 : 43);
}

int main(void)
{
	char line[512];

	signal(SIGTERM, asked_to_end);
	signal(SIGUSR1, asked_to_end);
	tlog_catch();
	while (fgets(line, sizeof(line), stdin))
		do_line(line);
	return 0;
}
