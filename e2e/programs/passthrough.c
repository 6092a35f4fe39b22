// SPDX-License-Identifier: Apache-2.0
/*
 * A minimal FUSE file system that forwards each call to another directory. e2e/bench/fuse compares
 * stargatefs-fuse with this program. Like stargatefs-fuse, it caches nothing and makes the kernel
 * repeat each query. So the difference between the two is the cost of StargateFS itself.
 *
 *   passthrough FROM DIR      serves FROM at DIR until DIR is unmounted; prints "ready"
 *
 * The file system supports one flat directory of regular files, and runs several threads. This is
 * enough only for a benchmark.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST (1u << 20)
#define THREADS 4
#define NODES 65536

static int dev, from;
static char *names[NODES];	/* names[n - 2] is the name of node n */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void die(const char *what)
{
	fprintf(stderr, "passthrough: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void answer(uint64_t unique, int err, const void *data, size_t len)
{
	struct fuse_out_header out = { (uint32_t)(sizeof(out) + len), err, unique };
	struct iovec v[2] = { { &out, sizeof(out) }, { (void *)data, len } };

	if (writev(dev, v, len ? 2 : 1) < 0 && errno != ENOENT)
		die("reply");
}

static uint64_t node_of(const char *name)
{
	uint64_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < NODES && names[i] && strcmp(names[i], name); i++)
		;
	if (i < NODES && !names[i])
		names[i] = strdup(name);
	pthread_mutex_unlock(&lock);
	return i + 2;
}

static const char *name_of(uint64_t node)
{
	return node == 1 ? "." : names[node - 2];
}

static void to_attr(const struct stat *st, struct fuse_attr *a)
{
	*a = (struct fuse_attr){
		.ino = st->st_ino, .size = (uint64_t)st->st_size, .blocks = (uint64_t)st->st_blocks,
		.atime = (uint64_t)st->st_atim.tv_sec, .mtime = (uint64_t)st->st_mtim.tv_sec,
		.ctime = (uint64_t)st->st_ctim.tv_sec, .atimensec = (uint32_t)st->st_atim.tv_nsec,
		.mtimensec = (uint32_t)st->st_mtim.tv_nsec,
		.ctimensec = (uint32_t)st->st_ctim.tv_nsec, .mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink, .uid = st->st_uid, .gid = st->st_gid,
		.blksize = 4096,
	};
}

static int entry(const char *name, struct fuse_entry_out *out)
{
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	*out = (struct fuse_entry_out){ .nodeid = node_of(name), .generation = 1 };
	to_attr(&st, &out->attr);
	return 0;
}

static void greet(const struct fuse_in_header *in)
{
	const struct fuse_init_in *i = (const void *)(in + 1);
	struct fuse_init_out out = {
		.major = 7, .minor = 31, .max_readahead = i->max_readahead, .max_background = 64,
		.congestion_threshold = 48, .max_write = MOST, .time_gran = 1,
		.max_pages = MOST / 4096,
		.flags = FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_ATOMIC_O_TRUNC |
			 FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES,
	};

	answer(in->unique, 0, &out, sizeof(out));
}

static void create(const struct fuse_in_header *in)
{
	const struct fuse_create_in *c = (const void *)(in + 1);
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = { 0 };
	int fd = openat(from, (const char *)(c + 1), (int)(c->flags & ~O_NOFOLLOW) | O_CREAT,
			c->mode), err;

	err = fd < 0 ? -errno : entry((const char *)(c + 1), &out.entry);
	out.open.fh = (uint64_t)fd;
	out.open.open_flags = FOPEN_DIRECT_IO;
	answer(in->unique, err, &out, err ? 0 : sizeof(out));
}

static void names_call(const struct fuse_in_header *in)
{
	const char *name = (const char *)(in + 1);
	struct fuse_entry_out e;
	int err = 0;

	if (in->opcode == FUSE_LOOKUP) {
		err = entry(name, &e);
		answer(in->unique, err, &e, err ? 0 : sizeof(e));
		return;
	}
	if (unlinkat(from, name, in->opcode == FUSE_RMDIR ? AT_REMOVEDIR : 0))
		err = -errno;
	answer(in->unique, err, NULL, 0);
}

static void attributes(const struct fuse_in_header *in)
{
	struct fuse_attr_out out = { 0 };
	struct stat st;

	if (fstatat(from, name_of(in->nodeid), &st, AT_SYMLINK_NOFOLLOW)) {
		answer(in->unique, -errno, NULL, 0);
		return;
	}
	to_attr(&st, &out.attr);
	answer(in->unique, 0, &out, sizeof(out));
}

static void open_call(const struct fuse_in_header *in)
{
	const struct fuse_open_in *o = (const void *)(in + 1);
	struct fuse_open_out out = { .open_flags = FOPEN_DIRECT_IO };
	int fd = openat(from, name_of(in->nodeid), (int)(o->flags & ~O_NOFOLLOW));

	out.fh = (uint64_t)fd;
	answer(in->unique, fd < 0 ? -errno : 0, &out, fd < 0 ? 0 : sizeof(out));
}

static void read_call(const struct fuse_in_header *in, char *room)
{
	const struct fuse_read_in *r = (const void *)(in + 1);
	ssize_t n = pread((int)r->fh, room, r->size, (off_t)r->offset);

	answer(in->unique, n < 0 ? -errno : 0, room, n < 0 ? 0 : (size_t)n);
}

static void write_call(const struct fuse_in_header *in)
{
	const struct fuse_write_in *w = (const void *)(in + 1);
	ssize_t n = pwrite((int)w->fh, w + 1, w->size, (off_t)w->offset);
	struct fuse_write_out out = { .size = (uint32_t)n };

	answer(in->unique, n < 0 ? -errno : 0, &out, n < 0 ? 0 : sizeof(out));
}

static void handle(const struct fuse_in_header *in, char *room)
{
	switch (in->opcode) {
	case FUSE_INIT: greet(in); break;
	case FUSE_LOOKUP:
	case FUSE_UNLINK:
	case FUSE_RMDIR: names_call(in); break;
	case FUSE_GETATTR: attributes(in); break;
	case FUSE_CREATE: create(in); break;
	case FUSE_OPEN: open_call(in); break;
	case FUSE_READ: read_call(in, room); break;
	case FUSE_WRITE: write_call(in); break;
	case FUSE_RELEASE:
		close((int)((const struct fuse_release_in *)(in + 1))->fh);
		answer(in->unique, 0, NULL, 0);
		break;
	case FUSE_FLUSH: answer(in->unique, 0, NULL, 0); break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: break;
	default: answer(in->unique, -ENOSYS, NULL, 0);
	}
}

static void *serve(void *arg)
{
	char *in = malloc(MOST + 8192), *room = malloc(MOST);
	ssize_t n;

	(void)arg;
	for (;;) {
		n = read(dev, in, MOST + 8192);
		if (n < 0 && errno == ENODEV)
			exit(0);
		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			handle((const void *)in, room);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	char options[128];
	int i;

	if (argc != 3)
		return 2;
	umask(0);
	from = open(argv[1], O_RDONLY | O_DIRECTORY);
	dev = open("/dev/fuse", O_RDWR);
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,default_permissions,max_read=%u", dev, MOST);
	if (from < 0 || dev < 0 || mount("passthrough", argv[2], "fuse.passthrough", 0, options))
		die(argv[2]);
	puts("ready");
	fflush(stdout);
	for (i = 1; i < THREADS; i++)
		pthread_create(&thread, NULL, serve, NULL);
	serve(NULL);
	return 0;
}
