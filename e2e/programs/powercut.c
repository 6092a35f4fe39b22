// SPDX-License-Identifier: Apache-2.0
/*
 * Checks the state of files after a power cut.
 *
 *   powercut run DIR SEED         changes files in DIR without end; prints "N" after step N
 *   powercut verify DIR SEED N    checks the files after the cut; N is the last line that arrived
 *
 * SEED determines all steps, so `verify` repeats them on a model. Each step is one system call, and
 * is durable when the call returns. So the files must match the model after step N, or after a
 * later step whose line was lost. Names, links, sizes, bytes, modes and attributes must match
 * exactly.
 *
 * Only a write that the cut interrupted may differ: its bytes may be partly old and partly new. If
 * it extends the file, the file may have any size between the old and the new size.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "random.h"

#define NAMES 14
#define BYTES (96u << 10)
#define LATER 60000	/* largest number of lost lines: more than fit into a pipe */

struct inode {
	unsigned int links, mode, size, attribute;
	unsigned char data[BYTES];
};

static struct inode inodes[NAMES];	/* the model */
static int names[NAMES];		/* the model: the inode of each name, or -1 */
static unsigned char fresh[BYTES];

enum kind { CREATE, WRITE, TRUNCATE, UNLINK, RENAME, EXCHANGE, LINK, CHMOD, ATTRIBUTE, SYNC };

struct step {
	enum kind kind;
	int a, b;		/* names */
	unsigned int pos, len;	/* WRITE stores fresh[0..len) at pos; TRUNCATE uses only pos */
	unsigned int value;
};

static unsigned int below(unsigned int n)
{
	return random64() % n;
}

static const char *name_of(int n)
{
	static char text[2][16];
	static unsigned int turn;
	char *to = text[turn++ % 2];

	sprintf(to, "%s/f%d", n < NAMES / 2 ? "a" : "b", n);
	return to;
}

__attribute__((noreturn)) static void die(const char *what, unsigned long step)
{
	printf("powercut: step %lu: %s (errno %d, %s)\n", step, what, errno, strerror(errno));
	exit(1);
}

/* --- the steps and the model ------------------------------------------------------------------ */

static int pick(int present)
{
	for (unsigned int tries = 0; tries < 100; tries++) {
		int n = below(NAMES);

		if ((names[n] >= 0) == present)
			return n;
	}
	return -1;
}

static struct step next_step(void)
{
	static const enum kind kinds[] = { CREATE, CREATE, WRITE, WRITE, WRITE, WRITE, WRITE,
		TRUNCATE, UNLINK, RENAME, RENAME, EXCHANGE, LINK, CHMOD, ATTRIBUTE, SYNC };

	for (;;) {
		struct step s = { .kind = kinds[below(sizeof(kinds) / sizeof(kinds[0]))] };
		int absent = s.kind == CREATE || s.kind == LINK;

		s.a = pick(s.kind != CREATE);
		s.b = s.kind == RENAME ? (int)below(NAMES) : pick(!absent);
		s.value = random64();
		if (s.a < 0 || s.b < 0)
			continue;
		/* In POSIX, a rename between two links of one file does nothing. */
		if ((s.kind == RENAME || s.kind == EXCHANGE) &&
		    (s.a == s.b || names[s.a] == names[s.b]))
			continue;
		if (s.kind == WRITE) {
			const struct inode *inode = &inodes[names[s.a]];

			s.pos = below(2) ? inode->size : below(inode->size + 1);
			s.len = 1 + below(1u << (1 + below(15)));
			if (s.pos + s.len > BYTES)
				continue;
			for (unsigned int i = 0; i < s.len; i++)
				fresh[i] = s.value * 31 + i * 7 + (i >> 8);
		} else if (s.kind == TRUNCATE) {
			s.pos = below(BYTES);
		}
		return s;
	}
}

static void drop(int inode)
{
	inodes[inode].links--;
}

static void apply(const struct step *s)
{
	struct inode *inode = s->kind == CREATE ? NULL : &inodes[names[s->a]];
	int i = 0;

	switch (s->kind) {
	case CREATE:
		while (inodes[i].links)
			i++;
		memset(&inodes[i], 0, sizeof(inodes[i]));
		inodes[i].links = 1;
		inodes[i].mode = 0600;
		names[s->a] = i;
		break;
	case WRITE:
		memcpy(inode->data + s->pos, fresh, s->len);
		if (s->pos + s->len > inode->size)
			inode->size = s->pos + s->len;
		break;
	case TRUNCATE:
		if (s->pos < inode->size)
			memset(inode->data + s->pos, 0, inode->size - s->pos);
		inode->size = s->pos;
		break;
	case UNLINK:
		drop(names[s->a]);
		names[s->a] = -1;
		break;
	case RENAME:
		if (names[s->b] >= 0)
			drop(names[s->b]);
		names[s->b] = names[s->a];
		names[s->a] = -1;
		break;
	case EXCHANGE:
		i = names[s->a];
		names[s->a] = names[s->b];
		names[s->b] = i;
		break;
	case LINK:
		names[s->b] = names[s->a];
		inode->links++;
		break;
	case CHMOD:
		inode->mode = s->value & 0777;
		break;
	case ATTRIBUTE:
		inode->attribute = s->value | 1;
		break;
	case SYNC:
		break;
	}
}

static void reset(const char *seed)
{
	state = strtoull(seed, NULL, 0);
	memset(inodes, 0, sizeof(inodes));
	memset(names, -1, sizeof(names));
}

/* --- run -------------------------------------------------------------------------------------- */

static int with_file(const char *name, const struct step *s)
{
	int fd = open(name, O_RDWR), answer;

	if (fd < 0)
		return -1;
	if (s->kind == WRITE)
		answer = pwrite(fd, fresh, s->len, s->pos) == (ssize_t)s->len ? 0 : -1;
	else
		answer = fsync(fd);
	close(fd);
	return answer;
}

static int execute(const struct step *s)
{
	const char *a = name_of(s->a), *b = name_of(s->b);
	unsigned int value = s->value | 1;
	int fd;

	switch (s->kind) {
	case CREATE:
		fd = open(a, O_CREAT | O_EXCL | O_WRONLY, 0600);
		return fd < 0 ? -1 : close(fd);
	case WRITE:
	case SYNC:
		return with_file(a, s);
	case TRUNCATE:
		return truncate(a, s->pos);
	case UNLINK:
		return unlink(a);
	case RENAME:
		return rename(a, b);
	case EXCHANGE:
		return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
	case LINK:
		return link(a, b);
	case CHMOD:
		return chmod(a, s->value & 0777);
	case ATTRIBUTE:
		return setxattr(a, "user.value", &value, sizeof(value), 0);
	}
	return -1;
}

static int run(void)
{
	char line[24];

	if (mkdir("a", 0700) || mkdir("b", 0700))
		die("mkdir", 0);
	for (unsigned long n = 1;; n++) {
		struct step s = next_step();

		if (execute(&s)) {
			fprintf(stderr, "powercut: kind %d %s %s\n", s.kind, name_of(s.a),
				name_of(s.b));
			die("the file system refused the step", n);
		}
		apply(&s);
		int len = sprintf(line, "%lu\n", n);

		if (write(STDOUT_FILENO, line, len) != len)
			return 1;
	}
}

/* --- verify ----------------------------------------------------------------------------------- */

struct actual {
	int present;
	ino_t ino;
	struct inode is;
};
static struct actual found[NAMES];

static void look(void)
{
	for (int n = 0; n < NAMES; n++) {
		struct actual *f = &found[n];
		struct stat st;
		int fd = open(name_of(n), O_RDONLY);

		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0 || fstat(fd, &st))
			die(name_of(n), 0);
		if (st.st_size > BYTES) {
			errno = 0;
			die("a file is larger than the test has written", n);
		}
		*f = (struct actual){ .present = 1, .ino = st.st_ino,
			.is = { .links = st.st_nlink, .mode = st.st_mode & 0777,
				.size = st.st_size } };
		if (fgetxattr(fd, "user.value", &f->is.attribute, sizeof(f->is.attribute)) < 0 &&
		    errno != ENODATA)
			die("fgetxattr", n);
		if (pread(fd, f->is.data, BYTES, 0) != st.st_size)
			die("a read of a whole file returned fewer bytes than the file's size", n);
		close(fd);
	}
}

/* Returns 1 if a part of the write @s to @inode can have produced the file @f. */
static int partly_written(const struct inode *inode, const struct inode *f, const struct step *s)
{
	unsigned int end = s->pos + s->len;
	unsigned int most = end > inode->size ? end : inode->size;

	if (f->size < inode->size || f->size > most)
		return 0;
	for (unsigned int i = 0; i < f->size; i++) {
		int is_old = i < inode->size && f->data[i] == inode->data[i];
		int is_new = i >= s->pos && i < end && f->data[i] == fresh[i - s->pos];

		if (!is_old && !is_new)
			return 0;
	}
	return 1;
}

/*
 * Returns the first difference between the files and the model, or NULL. The power cut may have
 * interrupted the step @next.
 */
static const char *differs(const struct step *next)
{
	static char why[120];

	for (int n = 0; n < NAMES; n++) {
		const struct actual *f = &found[n];
		const struct inode *inode = names[n] < 0 ? NULL : &inodes[names[n]];
		const char *what = NULL;

		if (!inode && !f->present)
			continue;
		if (!inode || !f->present)
			what = inode ? "is missing" : "exists, but must not";
		else if (f->is.links != inode->links)
			what = "wrong link count";
		else if (f->is.mode != inode->mode)
			what = "wrong mode";
		else if (f->is.attribute != inode->attribute)
			what = "wrong attribute";
		else if ((f->is.size != inode->size ||
			  memcmp(f->is.data, inode->data, inode->size)) &&
			 !(next->kind == WRITE && names[next->a] == names[n] &&
			   partly_written(inode, &f->is, next)))
			what = f->is.size != inode->size ? "wrong size" : "wrong content";
		for (int other = 0; !what && other < n; other++)
			if (found[other].present &&
			    (found[other].ino == f->ino) != (names[other] == names[n]))
				what = "shares its inode with the wrong names";
		if (what) {
			snprintf(why, sizeof(why), "%s: %s", name_of(n), what);
			return why;
		}
	}
	return NULL;
}

static int verify(unsigned long last)
{
	const char *why = NULL;
	char first_why[120] = "";

	look();
	for (unsigned long n = 0; n <= last + LATER; n++) {
		struct step next = next_step();

		if (n >= last) {
			why = differs(&next);
			if (!why) {
				printf("powercut: the files match step %lu (%lu lines arrived)\n",
				       n, last);
				return 0;
			}
			if (n == last)
				strcpy(first_why, why);
		}
		apply(&next);
	}
	printf("powercut: the files match no step from %lu on; the first difference: %s\n",
	       last, first_why);
	return 1;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	umask(0);
	if (argc < 4 || chdir(argv[2])) {
		fprintf(stderr, "usage: powercut run DIR SEED | verify DIR SEED N\n");
		return 2;
	}
	reset(argv[3]);
	if (!strcmp(argv[1], "run") && argc == 4)
		return run();
	if (!strcmp(argv[1], "verify") && argc == 5)
		return verify(strtoul(argv[4], NULL, 10));
	fprintf(stderr, "powercut: the first argument must be run or verify\n");
	return 2;
}
