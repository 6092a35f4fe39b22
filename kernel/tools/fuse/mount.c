// SPDX-License-Identifier: Apache-2.0
/*
 * Makes the mount. A process of root, or of any user in its own user namespace, calls mount(2).
 * Other processes run fusermount3, which Debian installs for all users.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fuse.h"

#define HELPER		"fusermount3"
#define TYPE		"fuse.stargatefs"
#define OPTIONS_MAX	4096

/* --- descriptors between processes ------------------------------------------------------------ */

int fd_send(int socket, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec v = { "", 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(int));
	return sendmsg(socket, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fd_receive(int socket)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte;
	struct iovec v = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t n;
	int fd;

	do
		n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0 || !CMSG_FIRSTHDR(&m) || control.head.cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(int));
	return fd;
}

/* --- mounting ------------------------------------------------------------------------------- */

/*
 * Copies a string, and escapes the special characters. fusermount3 needs escaped commas. mount(2)
 * takes the text after the last comma literally.
 */
static void escape(char *out, const char *in, const char *special)
{
	for (; *in; in++) {
		if (strchr(special, *in))
			*out++ = '\\';
		*out++ = *in;
	}
	*out = 0;
}

static bool others(const struct options *opt)
{
	return opt->others || (!geteuid() && !opt->alone);
}

static int mount_self(const struct options *opt, const struct stat *dir)
{
	unsigned long flags = MS_NOSUID | MS_NODEV;
	char text[256];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	if (!geteuid())
		flags = opt->flags;
	flags |= opt->flags | (opt->read_only ? MS_RDONLY : 0) | (opt->noatime ? MS_NOATIME : 0);
	snprintf(text, sizeof(text),
		 "fd=%d,rootmode=%o,user_id=%u,group_id=%u,default_permissions,max_read=%u%s", fd,
		 dir->st_mode & S_IFMT, geteuid(), getegid(), IO_MAX,
		 others(opt) ? ",allow_other" : "");
	if (!mount(opt->volume, opt->dir, TYPE, flags, text))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static int run_helper(const char *const argv[], int fd)
{
	char number[16];
	pid_t pid = fork();
	sigset_t none;
	int status;

	if (pid < 0)
		return -errno;
	if (!pid) {
		sigemptyset(&none);	/* the keeper's mask blocks signals */
		sigprocmask(SIG_SETMASK, &none, NULL);
		snprintf(number, sizeof(number), "%d", fd);
		if (fd >= 0) {
			fcntl(fd, F_SETFD, 0);
			setenv("_FUSE_COMMFD", number, 1);
		}
		tool_signals_back();
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -ENOENT;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EPERM;
}

static int mount_by_helper(const struct options *opt)
{
	char text[2 * OPTIONS_MAX], name[OPTIONS_MAX];
	const char *argv[] = { HELPER, "-o", text, "--", opt->dir, NULL };
	int pair[2], err, fd = -1;

	if (strlen(opt->volume) > OPTIONS_MAX / 2 - 1)
		return -ENAMETOOLONG;
	escape(name, opt->volume, ",\\");
	snprintf(text, sizeof(text), "%sdefault_permissions,max_read=%u,subtype=stargatefs,fsname=%s%s",
		 opt->read_only ? "ro," : "", IO_MAX, name, opt->others ? ",allow_other" : "");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	err = run_helper(argv, pair[0]);
	close(pair[0]);
	if (!err)
		fd = fd_receive(pair[1]);
	close(pair[1]);
	if (err == -ENOENT)
		tool_error("%s: this user may not mount, and %s is missing: install fuse3, or run the command as root",
			   opt->dir, HELPER);
	return err ? err : fd;
}

int mount_fuse(const struct options *opt)
{
	struct stat dir;
	int fd;

	if (stat(opt->dir, &dir)) {
		tool_error("%s: cannot be read: %s", opt->dir, strerror(errno));
		return -1;
	}
	fd = mount_self(opt, &dir);
	if (fd == -EPERM)
		return mount_by_helper(opt);
	if (fd == -ENOENT || fd == -ENXIO || fd == -ENODEV)
		tool_error("/dev/fuse: cannot be opened: load the kernel's module fuse, or give the container that device");
	else if (fd < 0)
		tool_error("%s: cannot be mounted: %s", opt->dir, strerror(-fd));
	return fd;
}

void mount_end(const struct options *opt, bool lazy)
{
	const char *argv[] = { HELPER, "-u", lazy ? "-qz" : "-q", "--", opt->dir, NULL };

	if (umount2(opt->dir, lazy ? MNT_DETACH : 0) && errno == EPERM)
		run_helper(argv, -1);
}
