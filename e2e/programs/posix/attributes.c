// SPDX-License-Identifier: Apache-2.0
/* Tests of permissions, times, flags, statx() and statfs(). */
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/time.h>

#include "posix.h"

TEST("attributes", modes)
{
	static const mode_t modes[] = { 0, 0777, 04755, 02755, 01777, 0644 };
	unsigned int i;

	close(make_file("f", "", 0));
	OK(mkdir("d", 0700));
	for (i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		OK(chmod("f", modes[i]));
		CHECK((stat_of("f").st_mode & 07777) == modes[i]);
		OK(chmod("d", modes[i]));
		CHECK((stat_of("d").st_mode & 07777) == modes[i]);
	}
	umask(027);
	close(OK(open("masked", O_CREAT | O_RDWR, 0666)));
	CHECK((stat_of("masked").st_mode & 0777) == 0640);
}

static void denied(void)
{
	FAILS(open("secret", O_RDONLY), EACCES);
	FAILS(open("readable", O_WRONLY), EACCES);
	close(OK(open("readable", O_RDONLY)));
	FAILS(open("closed/f", O_RDONLY), EACCES);
	FAILS(open("readonly/new", O_CREAT | O_WRONLY, 0644), EACCES);
	FAILS(unlink("readonly/f"), EACCES);
	FAILS(chmod("readable", 0777), EPERM);
	FAILS(chown("readable", 1000, 1000), EPERM);
	FAILS(truncate("readable", 0), EACCES);
	FAILS(utimes("readable", NULL), EACCES);
	FAILS(unlink("sticky/f"), EPERM);
	FAILS(rename("sticky/f", "sticky/g"), EPERM);
}

TEST("attributes", permissions)
{
	OK(mkdir("closed", 0700));
	OK(mkdir("readonly", 0755));
	OK(mkdir("sticky", 0777));
	OK(chmod("sticky", 01777));
	close(make_file("secret", "", 0));
	OK(chmod("secret", 0600));
	close(make_file("readable", "", 0));
	close(make_file("closed/f", "", 0));
	close(make_file("readonly/f", "", 0));
	close(make_file("sticky/f", "", 0));
	as_user(1000, 1000, denied);
}

TEST("attributes", owners)
{
	close(make_file("f", "", 0));
	OK(chmod("f", 06755));
	OK(chown("f", 1000, 2000));
	CHECK(stat_of("f").st_uid == 1000 && stat_of("f").st_gid == 2000);
	CHECK((stat_of("f").st_mode & 07777) == 0755);	/* a write clears set-ID bits */
	OK(chown("f", (uid_t)-1, 3000));
	CHECK(stat_of("f").st_uid == 1000 && stat_of("f").st_gid == 3000);
	OK(symlink("f", "l"));
	OK(lchown("l", 5, 6));
	CHECK(stat_of("l").st_uid == 5 && stat_of("f").st_uid == 1000);
	OK(chown("f", 4000000000u, 4000000001u));
	CHECK(stat_of("f").st_uid == 4000000000u && stat_of("f").st_gid == 4000000001u);
}

static void make_setid(void)
{
	close(make_file("f", "", 0));
	OK(chown("f", 1000, 1000));
	OK(chmod("f", 06777));
}

static void write_setid(void)
{
	int fd = OK(open("f", O_WRONLY));

	CHECK(write(fd, "x", 1) == 1);
}

TEST("attributes", write_drops_setid)
{
	make_setid();
	as_user(1001, 1001, write_setid);
	CHECK((stat_of("f").st_mode & 07777) == 0777);
}

static void fallocate_refused(void)
{
	int fd = OK(open("f", O_WRONLY));

	FAILS(fallocate(fd, 0x40 | FALLOC_FL_KEEP_SIZE, 0, 1), EOPNOTSUPP);	/* unshare */
}

TEST("attributes", what_is_refused_keeps_setid)
{
	make_setid();
	as_user(1001, 1001, fallocate_refused);
	CHECK((stat_of("f").st_mode & 07777) == 06777);
}

TEST("attributes", setgid_directory_passes_group_on)
{
	OK(mkdir("d", 0777));
	OK(chown("d", 0, 4242));
	OK(chmod("d", 02777));
	close(make_file("d/f", "", 0));
	OK(mkdir("d/sub", 0755));
	CHECK(stat_of("d/f").st_gid == 4242);
	CHECK(stat_of("d/sub").st_gid == 4242 && stat_of("d/sub").st_mode & S_ISGID);
}

TEST("attributes", times_follow_changes)
{
	struct stat a, b;
	int fd = make_file("f", "x", 1);

	a = stat_of("f");
	wait_tick();
	CHECK(write(fd, "y", 1) == 1);
	b = stat_of("f");
	CHECK(later(b.st_mtim, a.st_mtim) && later(b.st_ctim, a.st_ctim));
	wait_tick();
	CHECK(pwrite(fd, "z", 1, 0) == 1);	/* in place */
	a = stat_of("f");
	CHECK(later(a.st_mtim, b.st_mtim) && later(a.st_ctim, b.st_ctim));
	wait_tick();
	OK(chmod("f", 0600));
	b = stat_of("f");
	CHECK(same_time(b.st_mtim, a.st_mtim) && later(b.st_ctim, a.st_ctim));
	wait_tick();
	OK(ftruncate(fd, 0));
	a = stat_of("f");
	CHECK(later(a.st_mtim, b.st_mtim) && later(a.st_ctim, b.st_ctim));
	wait_tick();
	OK(link("f", "g"));
	b = stat_of("f");
	CHECK(same_time(b.st_mtim, a.st_mtim) && later(b.st_ctim, a.st_ctim));
	wait_tick();
	OK(rename("g", "h"));
	CHECK(later(stat_of("f").st_ctim, b.st_ctim));
}

TEST("attributes", directory_times)
{
	struct stat a, b;

	OK(mkdir("d", 0755));
	a = stat_of("d");
	wait_tick();
	close(make_file("d/f", "", 0));
	b = stat_of("d");
	CHECK(later(b.st_mtim, a.st_mtim) && later(b.st_ctim, a.st_ctim));
	wait_tick();
	OK(rename("d/f", "f"));
	a = stat_of("d");
	CHECK(later(a.st_mtim, b.st_mtim));
	wait_tick();
	OK(symlink("x", "d/l"));
	b = stat_of("d");
	CHECK(later(b.st_mtim, a.st_mtim));
	wait_tick();
	OK(unlink("d/l"));
	CHECK(later(stat_of("d").st_mtim, b.st_mtim));
}

TEST("attributes", access_time)
{
	struct timespec old[2] = { { 1000, 1 }, { 2000, 2 } };
	int fd = make_file("f", "x", 1);
	char c;

	OK(futimens(fd, old));
	/* with relatime, a read changes an access time that is older than the modification time */
	CHECK(pread(fd, &c, 1, 0) == 1);
	CHECK(stat_of("f").st_atim.tv_sec > 1000);
	close(fd);
	OK(utimensat(AT_FDCWD, "f", old, 0));
	fd = OK(open("f", O_RDONLY | O_NOATIME));
	CHECK(read(fd, &c, 1) == 1);
	CHECK(stat_of("f").st_atim.tv_sec == 1000);
}

TEST("attributes", explicit_times)
{
	static const time_t seconds[] = { 0, 1, -1, -5000000000L, 4294967296L, 6000000000L,
		9000000000L };
	unsigned int i;

	close(make_file("f", "", 0));
	for (i = 0; i < sizeof(seconds) / sizeof(*seconds); i++) {
		struct timespec t[2] = { { seconds[i], 123456789 }, { seconds[i], 987654321 } };
		struct stat st;

		OK(utimensat(AT_FDCWD, "f", t, 0));
		st = stat_of("f");
		CHECK(same_time(st.st_atim, t[0]) && same_time(st.st_mtim, t[1]));
	}
	{
		struct timespec t[2] = { { 0, UTIME_OMIT }, { 77, 7 } };
		struct timespec before = stat_of("f").st_atim;

		OK(utimensat(AT_FDCWD, "f", t, 0));
		CHECK(same_time(stat_of("f").st_atim, before) && stat_of("f").st_mtime == 77);
	}
}

TEST("attributes", statx_tells_of_direct_access)
{
	struct statx x;

	close(make_file("f", "x", 1));
	OK(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS | STATX_DIOALIGN, &x));
	CHECK(x.stx_mask & STATX_DIOALIGN && x.stx_dio_mem_align == 64 &&
	      x.stx_dio_offset_align == 4096);
}

TEST("attributes", statx_tells_more)
{
	struct statx before, x;
	int fd = make_file("f", "x", 1);

	OK(statx(AT_FDCWD, "f", 0, STATX_BTIME | STATX_BASIC_STATS, &before));
	CHECK(before.stx_mask & STATX_BTIME && before.stx_btime.tv_sec > 1000000000);
	wait_tick();
	CHECK(write(fd, "y", 1) == 1);
	OK(statx(AT_FDCWD, "f", 0, STATX_BTIME | STATX_BASIC_STATS, &x));
	CHECK(x.stx_btime.tv_sec == before.stx_btime.tv_sec &&
	      x.stx_btime.tv_nsec == before.stx_btime.tv_nsec);
	CHECK(x.stx_blksize == 4096 && x.stx_blocks == 8);
}

static void set_flags(const char *name, int flags)
{
	int fd = OK(open(name, O_RDONLY));

	OK(ioctl(fd, FS_IOC_SETFLAGS, &flags));
	close(fd);
}

static int flags_of(const char *name)
{
	int fd = OK(open(name, O_RDONLY)), flags = 0;

	OK(ioctl(fd, FS_IOC_GETFLAGS, &flags));
	close(fd);
	return flags;
}

TEST("attributes", immutable)
{
	close(make_file("f", "x", 1));
	set_flags("f", FS_IMMUTABLE_FL);
	CHECK(flags_of("f") & FS_IMMUTABLE_FL);
	FAILS(open("f", O_WRONLY), EPERM);
	FAILS(unlink("f"), EPERM);
	FAILS(rename("f", "g"), EPERM);
	FAILS(link("f", "g"), EPERM);
	FAILS(chmod("f", 0600), EPERM);
	FAILS(truncate("f", 0), EPERM);
	set_flags("f", 0);
	OK(unlink("f"));
}

TEST("attributes", statx_shows_flags)
{
	struct statx x;

	close(make_file("f", "x", 1));
	set_flags("f", FS_IMMUTABLE_FL);
	OK(statx(AT_FDCWD, "f", 0, STATX_BASIC_STATS, &x));
	set_flags("f", 0);
	CHECK(x.stx_attributes & STATX_ATTR_IMMUTABLE);
}

TEST("attributes", append_only)
{
	int fd;

	close(make_file("f", "x", 1));
	set_flags("f", FS_APPEND_FL);
	FAILS(open("f", O_WRONLY), EPERM);
	FAILS(unlink("f"), EPERM);
	fd = OK(open("f", O_WRONLY | O_APPEND));
	CHECK(write(fd, "y", 1) == 1);
	FAILS(ftruncate(fd, 0), EPERM);
	close(fd);
	CHECK(size_of("f") == 2);
	set_flags("f", 0);
}

TEST("attributes", other_flags)
{
	int fd, unknown = FS_COMPR_FL;

	OK(mkdir("d", 0755));
	set_flags("d", FS_NODUMP_FL | FS_NOATIME_FL);
	close(make_file("d/f", "", 0));
	CHECK(flags_of("d/f") == (FS_NODUMP_FL | FS_NOATIME_FL));	/* inherited */
	fd = OK(open("d/f", O_RDONLY));
	FAILS(ioctl(fd, FS_IOC_SETFLAGS, &unknown), EOPNOTSUPP);
}

TEST("attributes", statvfs_counts)
{
	struct statvfs a, b;
	char *buf = calloc(1, 4 * MIB);

	OK(statvfs(".", &a));
	CHECK(a.f_namemax == 255 && a.f_bsize == 4096 && a.f_bfree <= a.f_blocks &&
	      a.f_ffree <= a.f_files);
	close(make_file("f", buf, 4 * MIB));
	OK(statvfs(".", &b));
	CHECK(a.f_bfree - b.f_bfree >= 1024 && a.f_bfree - b.f_bfree < 1064);
	OK(unlink("f"));
	OK(statvfs(".", &b));
	CHECK(a.f_bfree - b.f_bfree < 32);	/* freed space counts immediately */
	free(buf);
}
