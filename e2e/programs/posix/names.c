// SPDX-License-Identifier: Apache-2.0
/* Tests of names: creating, linking, removing, renaming and listing. */
#include <dirent.h>
#include <limits.h>
#include <linux/fs.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/socket.h>

#include "posix.h"

static int rename2(const char *from, const char *to, unsigned int flags)
{
	return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
}

TEST("names", open_errors)
{
	close(make_file("f", "x", 1));
	OK(mkdir("d", 0755));
	FAILS(open("f", O_CREAT | O_EXCL | O_RDWR, 0600), EEXIST);
	FAILS(open("none", O_RDONLY), ENOENT);
	FAILS(open("f/x", O_RDONLY), ENOTDIR);
	FAILS(open("d", O_WRONLY), EISDIR);
	FAILS(open("f", O_DIRECTORY), ENOTDIR);
	OK(symlink("f", "l"));
	FAILS(open("l", O_NOFOLLOW), ELOOP);
	OK(symlink("loop", "loop"));
	FAILS(open("loop", O_RDONLY), ELOOP);
}

TEST("names", name_lengths)
{
	char name[NAME_MAX + 2];

	memset(name, 'n', sizeof(name));
	name[NAME_MAX] = 0;
	close(make_file(name, "", 0));
	CHECK(exists(name));
	OK(unlink(name));
	name[NAME_MAX] = 'n';
	name[NAME_MAX + 1] = 0;
	FAILS(open(name, O_CREAT | O_RDWR, 0644), ENAMETOOLONG);
	FAILS(mkdir(name, 0755), ENAMETOOLONG);
	FAILS(access(name, F_OK), ENAMETOOLONG);
}

TEST("names", any_bytes_in_names)
{
	char name[3] = "a?";
	int c;

	for (c = 1; c < 256; c++) {
		if (c == '/')
			continue;
		name[1] = (char)c;
		close(make_file(name, "", 0));
		CHECK(exists(name));
	}
}

TEST("names", unlink_keeps_open_file)
{
	char buf[5];
	int fd = make_file("f", "hello", 5);

	OK(unlink("f"));
	CHECK(!exists("f"));
	CHECK(pread(fd, buf, 5, 0) == 5 && !memcmp(buf, "hello", 5));
	CHECK(pwrite(fd, "world", 5, 5) == 5);
	FAILS(linkat(fd, "", AT_FDCWD, "back", AT_EMPTY_PATH), ENOENT);
	close(fd);
	FAILS(unlink("f"), ENOENT);
	OK(mkdir("d", 0755));
	FAILS(unlink("d"), EISDIR);
}

TEST("names", hard_links)
{
	close(make_file("a", "x", 1));
	OK(link("a", "b"));
	CHECK(stat_of("a").st_nlink == 2 && stat_of("a").st_ino == stat_of("b").st_ino);
	FAILS(link("a", "b"), EEXIST);
	FAILS(link("none", "c"), ENOENT);
	OK(mkdir("d", 0755));
	FAILS(link("d", "e"), EPERM);
	OK(unlink("a"));
	CHECK(stat_of("b").st_nlink == 1 && size_of("b") == 1);
}

TEST("names", directories)
{
	OK(mkdir("d", 0755));
	CHECK(stat_of("d").st_nlink == 2);
	OK(mkdir("d/e", 0755));
	CHECK(stat_of("d").st_nlink == 3);
	FAILS(mkdir("d", 0755), EEXIST);
	FAILS(mkdir("none/x", 0755), ENOENT);
	FAILS(rmdir("d"), ENOTEMPTY);
	OK(rmdir("d/e"));
	CHECK(stat_of("d").st_nlink == 2);
	close(make_file("f", "", 0));
	FAILS(rmdir("f"), ENOTDIR);
	FAILS(rmdir("none"), ENOENT);
	FAILS(rmdir("d/."), EINVAL);
	OK(rmdir("d"));
}

TEST("names", removed_working_directory)
{
	OK(mkdir("d", 0755));
	OK(chdir("d"));
	OK(rmdir("../d"));
	FAILS(open("f", O_CREAT | O_RDWR, 0644), ENOENT);
	FAILS(mkdir("x", 0755), ENOENT);
}

TEST("names", symlinks)
{
	char target[PATH_MAX], back[PATH_MAX];
	size_t len;

	for (len = 1; len < sizeof(target); len = len < 62 ? len + 20 : len * 2 + 1) {
		memset(target, 't', len);
		target[len] = 0;
		OK(symlink(target, "l"));
		CHECK((size_t)size_of("l") == len);
		CHECK(readlink("l", back, sizeof(back)) == (ssize_t)len &&
		      !memcmp(back, target, len));
		OK(unlink("l"));
	}
	memset(target, 't', 4095);
	target[4095] = 0;
	OK(symlink(target, "l"));
	CHECK(readlink("l", back, sizeof(back)) == 4095);
	CHECK(readlink("l", back, 10) == 10);
	FAILS(symlink("", "empty"), ENOENT);
	FAILS(symlink("x", "l"), EEXIST);
	close(make_file("f", "", 0));
	FAILS(readlink("f", back, sizeof(back)), EINVAL);
}

TEST("names", special_files)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "sock" };
	int s = OK(socket(AF_UNIX, SOCK_STREAM, 0)), fd;
	char c;

	OK(mkfifo("fifo", 0600));
	CHECK(S_ISFIFO(stat_of("fifo").st_mode));
	fd = OK(open("fifo", O_RDWR));
	CHECK(write(fd, "x", 1) == 1 && read(fd, &c, 1) == 1 && c == 'x');
	OK(bind(s, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK(S_ISSOCK(stat_of("sock").st_mode));
	OK(mknod("null", S_IFCHR | 0666, makedev(1, 3)));
	CHECK(stat_of("null").st_rdev == makedev(1, 3));
	fd = OK(open("null", O_RDWR));
	CHECK(write(fd, "x", 1) == 1 && read(fd, &c, 1) == 0);
	OK(mknod("block", S_IFBLK | 0600, makedev(259, 70000)));
	CHECK(S_ISBLK(stat_of("block").st_mode) &&
	      stat_of("block").st_rdev == makedev(259, 70000));
	OK(mknod("reg", S_IFREG | 0600, 0));
	CHECK(S_ISREG(stat_of("reg").st_mode));
}

TEST("names", rename_replaces)
{
	char buf[1];
	int fd;

	close(make_file("a", "a", 1));
	close(make_file("b", "b", 1));
	OK(rename("a", "b"));
	CHECK(!exists("a"));
	fd = OK(open("b", O_RDONLY));
	CHECK(read(fd, buf, 1) == 1 && *buf == 'a');
	OK(link("b", "c"));
	OK(rename("b", "c"));		/* no change: both names are of one file */
	CHECK(exists("b") && exists("c"));
}

TEST("names", rename_errors)
{
	close(make_file("f", "", 0));
	OK(mkdir("d", 0755));
	OK(mkdir("d/sub", 0755));
	OK(mkdir("e", 0755));
	FAILS(rename("none", "x"), ENOENT);
	FAILS(rename("f", "d"), EISDIR);
	FAILS(rename("d", "f"), ENOTDIR);
	FAILS(rename("e", "d"), ENOTEMPTY);
	FAILS(rename("d", "d/sub/x"), EINVAL);
	FAILS(rename("d/sub", "d"), ENOTEMPTY);
	OK(rename("d/sub", "e"));		/* rename() replaces an empty directory */
	CHECK(!exists("d/sub") && stat_of("d").st_nlink == 2);
}

TEST("names", rename_directory_across)
{
	struct stat st;

	OK(mkdir("p", 0755));
	OK(mkdir("q", 0755));
	OK(mkdir("p/d", 0755));
	close(make_file("p/d/f", "x", 1));
	OK(rename("p/d", "q/d"));
	CHECK(stat_of("p").st_nlink == 2 && stat_of("q").st_nlink == 3);
	CHECK(size_of("q/d/f") == 1);
	OK(stat("q/d/..", &st));
	CHECK(st.st_ino == stat_of("q").st_ino);
}

TEST("names", rename_noreplace)
{
	close(make_file("a", "a", 1));
	close(make_file("b", "b", 1));
	FAILS(rename2("a", "b", RENAME_NOREPLACE), EEXIST);
	OK(rename2("a", "c", RENAME_NOREPLACE));
	CHECK(!exists("a") && exists("b") && exists("c"));
}

TEST("names", rename_exchange)
{
	ino_t d, f;

	OK(mkdir("p", 0755));
	OK(mkdir("p/d", 0755));
	close(make_file("f", "", 0));
	d = stat_of("p/d").st_ino;
	f = stat_of("f").st_ino;
	OK(rename2("f", "p/d", RENAME_EXCHANGE));
	CHECK(stat_of("f").st_ino == d && stat_of("p/d").st_ino == f);
	CHECK(stat_of("p").st_nlink == 2 && S_ISDIR(stat_of("f").st_mode));
	FAILS(rename2("f", "none", RENAME_EXCHANGE), ENOENT);
	FAILS(rename2("f", "p/d", RENAME_EXCHANGE | RENAME_NOREPLACE), EINVAL);
}

TEST("names", rename_whiteout)
{
	struct stat st;

	close(make_file("a", "a", 1));
	OK(rename2("a", "b", RENAME_WHITEOUT));
	st = stat_of("a");
	CHECK(S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0) && size_of("b") == 1);
	close(make_file("c", "ccc", 3));
	OK(rename2("c", "b", RENAME_WHITEOUT));
	CHECK(S_ISCHR(stat_of("c").st_mode) && size_of("b") == 3);
}

TEST("names", tmpfile_gets_a_name)
{
	char path[64];
	int fd = OK(open(".", O_TMPFILE | O_RDWR, 0600));
	struct stat st;

	CHECK(write(fd, "tmp", 3) == 3);
	OK(fstat(fd, &st));
	CHECK(st.st_nlink == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	OK(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
	CHECK(size_of("named") == 3 && stat_of("named").st_nlink == 1);
	close(fd);
	CHECK(size_of("named") == 3);
	fd = OK(open(".", O_TMPFILE | O_RDWR | O_EXCL, 0600));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	FAILS(linkat(AT_FDCWD, path, AT_FDCWD, "never", AT_SYMLINK_FOLLOW), ENOENT);
}

static int count_names(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	CHECK(d);
	while ((e = readdir(d)))
		n++;
	closedir(d);
	return n;
}

TEST("names", listing_is_complete)
{
	enum { N = 3000 };
	static char seen[N];
	struct dirent *e;
	char name[32];
	int i, dots = 0;
	DIR *d;

	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "%d", i);
		close(make_file(name, "", 0));
	}
	d = opendir(".");
	CHECK(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.') {
			CHECK(e->d_type == DT_DIR);
			dots++;
			continue;
		}
		i = atoi(e->d_name);
		CHECK(e->d_type == DT_REG && !seen[i]++);
		if (i % 3 == 0)
			OK(unlink(e->d_name));	/* a removal of names does not move other names */
	}
	closedir(d);
	for (i = 0; i < N; i++)
		CHECK(seen[i]);
	CHECK(dots == 2 && count_names(".") == 2 + N - N / 3);
}

TEST("names", listing_can_be_resumed)
{
	enum { N = 500 };
	char names[N + 2][256], name[32];
	long at[N + 2];
	struct dirent *e;
	int i, n = 0;
	DIR *d;

	for (i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "name-%d", i);
		close(make_file(name, "", 0));
	}
	d = opendir(".");
	for (n = 0; at[n] = telldir(d), (e = readdir(d)); n++)
		snprintf(names[n], sizeof(names[n]), "%s", e->d_name);
	CHECK(n == N + 2);
	for (i = n - 1; i >= 0; i -= 7) {
		seekdir(d, at[i]);
		e = readdir(d);
		CHECK(e && !strcmp(e->d_name, names[i]));
	}
	rewinddir(d);
	e = readdir(d);
	CHECK(e && !strcmp(e->d_name, "."));
	closedir(d);
}

TEST("names", file_handles)
{
	struct {
		struct file_handle h;
		char room[128];
	} fh = { .h.handle_bytes = 128 };
	int mount_id, mount_fd = OK(open(".", O_RDONLY)), fd;
	char buf[4];

	close(make_file("f", "data", 4));
	OK(name_to_handle_at(AT_FDCWD, "f", &fh.h, &mount_id, 0));
	OK(rename("f", "g"));
	fd = OK(open_by_handle_at(mount_fd, &fh.h, O_RDONLY));
	CHECK(read(fd, buf, 4) == 4 && !memcmp(buf, "data", 4));
	close(fd);
	OK(unlink("g"));
	FAILS(open_by_handle_at(mount_fd, &fh.h, O_RDONLY), ESTALE);
}

TEST("names", handle_of_a_removed_file)
{
	struct {
		struct file_handle h;
		char room[128];
	} fh = { .h.handle_bytes = 128 };
	int mount_id, mount_fd = OK(open(".", O_RDONLY)), fd, by;
	char buf[8];

	fd = make_file("f", "data", 4);
	OK(name_to_handle_at(AT_FDCWD, "f", &fh.h, &mount_id, 0));
	OK(unlink("f"));
	by = OK(open_by_handle_at(mount_fd, &fh.h, O_RDWR));
	CHECK(pread(by, buf, 4, 0) == 4 && !memcmp(buf, "data", 4));
	CHECK(pwrite(by, "more", 4, 4) == 4);
	close(fd);
	CHECK(pread(by, buf, 8, 0) == 8 && !memcmp(buf, "datamore", 8));
	fd = OK(open_by_handle_at(mount_fd, &fh.h, O_RDONLY));
	close(by);
	CHECK(pread(fd, buf, 8, 0) == 8 && !memcmp(buf, "datamore", 8));
	close(fd);
	FAILS(open_by_handle_at(mount_fd, &fh.h, O_RDONLY), ESTALE);
}

static void drop_caches(void)
{
	int fd = OK(open("/proc/sys/vm/drop_caches", O_WRONLY));

	CHECK(write(fd, "2", 1) == 1);
	close(fd);
}

TEST("names", handle_of_a_forgotten_directory)
{
	struct {
		struct file_handle h;
		char room[128];
	} fh = { .h.handle_bytes = 128 };
	int mount_id, mount_fd = OK(open(".", O_RDONLY)), fd;
	char path[64], back[PATH_MAX], here[PATH_MAX];
	ssize_t n;

	OK(mkdir("a", 0755));
	OK(mkdir("a/b", 0755));
	OK(mkdir("a/b/c", 0755));
	close(make_file("a/b/c/f", "x", 1));
	OK(name_to_handle_at(AT_FDCWD, "a/b/c", &fh.h, &mount_id, 0));
	CHECK(getcwd(here, sizeof(here)));
	drop_caches();
	fd = OK(open_by_handle_at(mount_fd, &fh.h, O_RDONLY | O_DIRECTORY));
	OK(faccessat(fd, "f", F_OK, 0));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* the look-up by name also cached the parent directories */
	n = OK(readlink(path, back, sizeof(back) - 1));
	back[n] = 0;
	CHECK(!strncmp(back, here, strlen(here)) && !strcmp(back + strlen(here), "/a/b/c"));
}

TEST("names", survives_forgetting)
{
	char target[100], back[100];
	int i;

	memset(target, 's', sizeof(target));
	target[99] = 0;
	OK(mkdir("d", 0751));
	OK(symlink(target, "d/l"));
	OK(mknod("d/dev", S_IFCHR | 0600, makedev(10, 200)));
	close(make_file("d/f", "12345", 5));
	OK(chown("d/f", 7, 8));
	for (i = 0; i < 3; i++)
		drop_caches();
	CHECK((stat_of("d").st_mode & 07777) == 0751 && stat_of("d").st_nlink == 2);
	CHECK(readlink("d/l", back, 100) == 99 && !memcmp(back, target, 99));
	CHECK(stat_of("d/dev").st_rdev == makedev(10, 200));
	CHECK(size_of("d/f") == 5 && stat_of("d/f").st_uid == 7 && stat_of("d/f").st_gid == 8);
}
