// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps files open and mapped, and executes one command per input line. A test can so examine the
 * view of a system that has cached an earlier state. The program answers each line with one line.
 * K, from 0 to 15, is the number of an open file.
 *
 *   open K PATH, create K PATH  opens the file for reading and writing; create may make the file
 *   log K PATH                  opens the file with O_APPEND, and may make it
 *   close K                     closes the file
 *   read K OFFSET LENGTH        prints bytes of the file
 *   write K OFFSET TEXT         writes the text
 *   records K WHO COUNT LENGTH  appends COUNT records of LENGTH bytes, which repeat the letter WHO
 *   stat K                      prints size, links and permissions
 *   chmod K MODE                sets the octal mode
 *   immutable K 0|1             clears or sets the flag
 *   map K LENGTH, mapp K LENGTH maps the file, shared or private
 *   peek K OFFSET               prints a byte of the mapping
 *   poke K OFFSET C             stores a byte into the mapping
 *   unmap K                     unmaps the file
 *   put PATH TEXT               replaces the contents of a file
 *   have PATH                   prints "file", "directory", "link" or the error
 *   dir K PATH                  opens a directory
 *   list K                      prints its names, unsorted
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES	16
#define LINE	8192

static struct {
	int fd;
	DIR *dir;
	char *map;
	size_t len;
} f[FILES];

static sigjmp_buf bus;

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(bus, 1);
}

static void say_errno(void)
{
	printf("%s\n", strerrorname_np(errno));
}

static void say(int failed)
{
	if (failed)
		say_errno();
	else
		puts("ok");
}

static void do_open(int k, const char *path, int flags)
{
	f[k].fd = open(path, O_RDWR | flags, 0644);
	say(f[k].fd < 0);
}

static void do_read(int k, off_t off, size_t len)
{
	static char text[LINE];
	ssize_t n = pread(f[k].fd, text, len < LINE ? len : LINE - 1, off);

	if (n < 0) {
		say_errno();
		return;
	}
	for (ssize_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = '.';
	printf("%.*s\n", (int)n, text);
}

static void do_map(int k, size_t len, int flags)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, f[k].fd, 0);

	if (p != MAP_FAILED) {
		f[k].map = p;
		f[k].len = len;
	}
	say(p == MAP_FAILED);
}

static void do_peek(int k, size_t off)
{
	volatile char *at = f[k].map + off;

	if (sigsetjmp(bus, 1)) {
		puts("SIGBUS");
		return;
	}
	printf("%c\n", *at ? *at : '.');
}

static void do_poke(int k, size_t off, char c)
{
	volatile char *at = f[k].map + off;

	if (sigsetjmp(bus, 1)) {
		puts("SIGBUS");
		return;
	}
	*at = c;
	puts("ok");
}

static void do_stat(int k)
{
	struct stat st;

	if (fstat(f[k].fd, &st))
		say_errno();
	else
		printf("%lld %u %o\n", (long long)st.st_size, (unsigned int)st.st_nlink,
		       st.st_mode & 07777);
}

static void do_records(int k, char who, int count, size_t len)
{
	char *text = malloc(len);

	memset(text, who, len);
	text[len - 1] = '\n';
	for (int i = 0; i < count; i++)
		if (write(f[k].fd, text, len) != (ssize_t)len) {
			say_errno();
			return;
		}
	free(text);
	puts("ok");
}

static void do_immutable(int k, int on)
{
	int flags = on ? FS_IMMUTABLE_FL : 0;

	say(ioctl(f[k].fd, FS_IOC_SETFLAGS, &flags));
}

static void do_chmod(int k, unsigned int mode)
{
	say(fchmod(f[k].fd, mode));
}

static void do_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	size_t len = strlen(text);

	say(fd < 0 || write(fd, text, len) != (ssize_t)len || close(fd));
}

static void do_have(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		say_errno();
	else
		puts(S_ISREG(st.st_mode) ? "file" : S_ISDIR(st.st_mode) ? "directory" :
		     S_ISLNK(st.st_mode) ? "link" : "other");
}

static void do_list(int k)
{
	struct dirent *d;

	rewinddir(f[k].dir);
	errno = 0;
	while ((d = readdir(f[k].dir)))
		if (d->d_name[0] != '.')
			printf("%s ", d->d_name);
	if (errno)
		printf("%s", strerrorname_np(errno));
	puts("");
}

static void obey(char *line)
{
	static char path[LINE], text[LINE];
	char word[16], c;
	long long a, b;
	int k;

	if (sscanf(line, "have %8191s", path) == 1)
		do_have(path);
	else if (sscanf(line, "put %8191s %8191s", path, text) == 2)
		do_put(path, text);
	else if (sscanf(line, "%15s %d", word, &k) != 2 || k < 0 || k >= FILES)
		printf("unknown command: %s\n", line);
	else if (sscanf(line, "open %*d %8191s", path) == 1)
		do_open(k, path, 0);
	else if (sscanf(line, "create %*d %8191s", path) == 1)
		do_open(k, path, O_CREAT);
	else if (sscanf(line, "log %*d %8191s", path) == 1)
		do_open(k, path, O_CREAT | O_APPEND);
	else if (!strcmp(word, "close"))
		say(close(f[k].fd));
	else if (sscanf(line, "read %*d %lld %lld", &a, &b) == 2)
		do_read(k, a, (size_t)b);
	else if (sscanf(line, "write %*d %lld %8191s", &a, text) == 2)
		say(pwrite(f[k].fd, text, strlen(text), a) != (ssize_t)strlen(text));
	else if (sscanf(line, "records %*d %c %lld %lld", &c, &a, &b) == 3)
		do_records(k, c, (int)a, (size_t)b);
	else if (sscanf(line, "map %*d %lld", &a) == 1)
		do_map(k, (size_t)a, MAP_SHARED);
	else if (sscanf(line, "mapp %*d %lld", &a) == 1)
		do_map(k, (size_t)a, MAP_PRIVATE);
	else if (!strcmp(word, "unmap"))
		say(munmap(f[k].map, f[k].len));
	else if (sscanf(line, "peek %*d %lld", &a) == 1)
		do_peek(k, (size_t)a);
	else if (sscanf(line, "poke %*d %lld %c", &a, &c) == 2)
		do_poke(k, (size_t)a, c);
	else if (sscanf(line, "immutable %*d %lld", &a) == 1)
		do_immutable(k, (int)a);
	else if (sscanf(line, "chmod %*d %llo", (unsigned long long *)&a) == 1)
		do_chmod(k, (unsigned int)a);
	else if (!strcmp(word, "stat"))
		do_stat(k);
	else if (sscanf(line, "dir %*d %8191s", path) == 1)
		say(!(f[k].dir = opendir(path)));
	else if (!strcmp(word, "list"))
		do_list(k);
	else
		printf("unknown command: %s\n", line);
}

int main(void)
{
	static char line[2 * LINE];
	struct sigaction sa = { .sa_handler = on_bus };

	sigaction(SIGBUS, &sa, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		obey(line);
	}
	return 0;
}
