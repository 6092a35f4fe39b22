// SPDX-License-Identifier: Apache-2.0
/*
 * bells: an exchange of doorbells for VMs (docs/doorbells.md). It speaks the protocol of QEMU's
 * ivshmem-doorbell device: each VM connects to a Unix socket, and gets a memory file and eventfds.
 * An eventfd that one VM's device writes is an interrupt in the other VM. This program passes no
 * interrupt itself, so the bells of connected VMs work on when it has ended.
 *
 * A VM has one eventfd for each sender, and each sender gets only its own one. So a VM cannot ring
 * as if it were another one, and the receiver knows which sender rings too often.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "ctl.h"
#include "uapi/bells.h"

#define PROTOCOL_VERSION	0	/* of ivshmem */
#define MEMORY_SIZE		4096	/* QEMU wants a power of two */

#define HOST			0	/* the number of this host's kernel, if it is a system */

/**
 * struct peer - a system. @socket: of a VM; -1: the number is free, or the host's. @rung_by: an
 * eventfd for each sender.
 */
struct peer {
	int socket;
	int rung_by[SG_BELLS_PEERS_MAX];
};

/* @kernel: the connection of this host's kernel, which has mounted the volume; or -1. */
struct exchange {
	const char *path;
	int kernel;
	struct sg_bells_page page;
	int listener, signals, memory;
	unsigned int peers, next;
	struct peer peer[SG_BELLS_PEERS_MAX];
};

/* --- messages ------------------------------------------------------------------------------- */

/* Sends a number, with a descriptor unless @fd is -1. Never waits for the receiver. */
static bool send_to(const struct peer *p, s64 number, int fd)
{
	u64 wire = htole64((u64)number);
	char control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec data = { .iov_base = &wire, .iov_len = sizeof(wire) };
	struct msghdr msg = { .msg_iov = &data, .msg_iovlen = 1 };
	struct cmsghdr *rights;

	if (fd >= 0) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		rights = CMSG_FIRSTHDR(&msg);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
	}
	return sendmsg(p->socket, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(wire);
}

/* Tells a VM of another one: that VM's eventfd for this sender. */
static bool send_neighbour(struct exchange *x, unsigned int to, unsigned int other)
{
	return send_to(&x->peer[to], other, x->peer[other].rung_by[to]);
}

/* --- this host ------------------------------------------------------------------------------ */

static bool is_host(const struct exchange *x, unsigned int id)
{
	return x->kernel >= 0 && id == HOST;
}

static bool is_there(const struct exchange *x, unsigned int id)
{
	return x->peer[id].socket >= 0 || is_host(x, id);
}

static bool make_eventfds(const struct exchange *x, struct peer *p)
{
	unsigned int i;
	bool made = true;

	for (i = 0; i < x->peers; i++) {
		p->rung_by[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		made &= p->rung_by[i] >= 0;
	}
	return made;
}

/* Tells the kernel how to ring a VM, or that the VM has gone. */
static void tell_host(const struct exchange *x, unsigned int id, bool there)
{
	struct sg_ioc_bell bell = { .id = id, .fd = there ? x->peer[id].rung_by[HOST] : -1 };

	if (x->kernel >= 0 && ioctl(x->kernel, SG_IOC_BELL, &bell))
		tool_error("%s: this host cannot ring system %u: %s", x->path, id, strerror(errno));
}

/* Finds a directory of the volume's mount on this host. */
static bool find_mount(const char *volume, char where[PATH_MAX])
{
	struct stat st;

	if (stat(volume, &st))
		return false;
	if (S_ISBLK(st.st_mode))
		return mounted_at(st.st_rdev, where);
	return S_ISDIR(st.st_mode) && snprintf(where, PATH_MAX, "%s", volume) < PATH_MAX;
}

/*
 * Makes this host's kernel a system of the exchange, if the volume is mounted here. The kernel
 * finds the volume by its UUID, so the connection outlasts an unmount.
 */
static int connect_host(struct exchange *x, const char *volume)
{
	struct sg_ioc_bells b = {
		.exchange = x->page.exchange, .id = HOST, .peers = x->page.peers,
	};
	char where[PATH_MAX];
	unsigned int i;
	int dir;

	if (!volume || !find_mount(volume, where))
		return 0;
	if (!make_eventfds(x, &x->peer[HOST])) {
		tool_error("%s: no eventfds: %s", x->path, strerror(errno));
		return 1;
	}
	for (i = 0; i < x->peers; i++)
		b.rung_by[i] = x->peer[HOST].rung_by[i];
	dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	x->kernel = dir < 0 ? -1 : ioctl(dir, SG_IOC_BELLS, &b);
	if (x->kernel < 0)
		tool_error("%s: this host has no doorbell: %s", where, strerror(errno));
	if (dir >= 0)
		close(dir);
	return x->kernel < 0;
}

/* --- VMs ------------------------------------------------------------------------------------ */

static void say(const struct exchange *x, unsigned int id, const char *what)
{
	printf("%s: system %u %s\n", x->path, id, what);
	fflush(stdout);
}

static void forget(struct exchange *x, unsigned int id, const char *why)
{
	struct peer *p = &x->peer[id];
	unsigned int i;

	close(p->socket);
	p->socket = -1;
	for (i = 0; i < x->peers; i++)
		if (p->rung_by[i] >= 0)
			close(p->rung_by[i]);
	say(x, id, why);
}

/*
 * Removes a VM, and tells the others. A VM whose QEMU does not read is also removed: it keeps the
 * bells that it has.
 */
static void drop(struct exchange *x, unsigned int id, const char *why)
{
	bool lost[SG_BELLS_PEERS_MAX] = { false };
	unsigned int i;

	forget(x, id, why);
	tell_host(x, id, false);
	for (i = 0; i < x->peers; i++)
		lost[i] = x->peer[i].socket >= 0 && !send_to(&x->peer[i], id, -1);
	for (i = 0; i < x->peers; i++)
		if (lost[i] && x->peer[i].socket >= 0)
			drop(x, i, "does not read");
}

/* Returns a free number, as long unused as possible; or @peers. */
static unsigned int free_number(struct exchange *x)
{
	unsigned int i, id;

	for (i = 0; i < x->peers; i++) {
		id = (x->next + i) % x->peers;
		if (!is_there(x, id)) {
			x->next = id + 1;
			return id;
		}
	}
	return x->peers;
}

/* The device gets its memory first, and its own eventfds as its vectors, in order. */
static bool welcome(struct exchange *x, unsigned int id)
{
	struct peer *p = &x->peer[id];
	bool sent = send_to(p, PROTOCOL_VERSION, -1) && send_to(p, id, -1) &&
		    send_to(p, -1, x->memory);
	unsigned int i;

	for (i = 0; i < x->peers && sent; i++)
		if (i != id && is_there(x, i))
			sent = send_neighbour(x, id, i);
	for (i = 0; i < x->peers && sent; i++)
		sent = send_to(p, id, p->rung_by[i]);
	return sent;
}

static void admit(struct exchange *x)
{
	int fd = accept4(x->listener, NULL, NULL, SOCK_CLOEXEC);
	unsigned int id, i;

	if (fd < 0)
		return;
	id = free_number(x);
	if (id == x->peers) {
		tool_error("%s: a VM was refused: %u are connected; start it with a higher --peers",
			   x->path, x->peers);
		close(fd);
		return;
	}
	x->peer[id].socket = fd;
	if (!make_eventfds(x, &x->peer[id]) || !welcome(x, id)) {
		forget(x, id, "could not be connected");
		return;
	}
	say(x, id, "has connected");
	tell_host(x, id, true);
	for (i = 0; i < x->peers; i++)
		if (i != id && x->peer[i].socket >= 0 && !send_neighbour(x, i, id))
			drop(x, i, "does not read");
}

/* --- the program ---------------------------------------------------------------------------- */

static int bells_error(const char *path, const char *what)
{
	tool_error("%s: %s: %s", path, what, strerror(errno));
	return 1;
}

static bool is_served(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool served = fd >= 0 && !connect(fd, (const struct sockaddr *)at, sizeof(*at));

	if (fd >= 0)
		close(fd);
	return served;
}

/* The socket gets its name when it accepts connections. It replaces that of a server that died. */
static int listen_at(struct exchange *x)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX }, made = { .sun_family = AF_UNIX };
	size_t len = strlen(x->path);

	if (len + 2 > sizeof(at.sun_path)) {
		tool_error("%s: the path of a socket has at most %zu bytes", x->path,
			   sizeof(at.sun_path) - 2);
		return 1;
	}
	memcpy(at.sun_path, x->path, len);
	memcpy(made.sun_path, x->path, len);
	made.sun_path[len] = '~';
	if (is_served(&at)) {
		tool_error("%s: another program serves this socket", x->path);
		return 1;
	}
	unlink(made.sun_path);
	x->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (x->listener < 0 || bind(x->listener, (struct sockaddr *)&made, sizeof(made)) ||
	    listen(x->listener, SG_BELLS_PEERS_MAX) || rename(made.sun_path, x->path))
		return bells_error(x->path, "no socket");
	return 0;
}

static int make_memory(struct exchange *x)
{
	x->memory = memfd_create("stargate-bells", MFD_CLOEXEC);
	if (x->memory < 0 || ftruncate(x->memory, MEMORY_SIZE) ||
	    pwrite(x->memory, &x->page, sizeof(x->page), 0) != sizeof(x->page))
		return bells_error(x->path, "no memory for the device");
	return 0;
}

static int catch_signals(struct exchange *x)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	x->signals = signalfd(-1, &set, SFD_CLOEXEC);
	return x->signals < 0 ? bells_error(x->path, "no signals") : 0;
}

static int allow_descriptors(const struct exchange *x)
{
	struct rlimit limit;
	rlim_t need = x->peers * (x->peers + 1) + 32;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return bells_error(x->path, "descriptors");
	if (limit.rlim_cur >= need)
		return 0;
	limit.rlim_cur = need;
	limit.rlim_max = SG_MAX(limit.rlim_max, need);
	if (!setrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	tool_error("%s: %u systems need %llu open descriptors: raise the limit (ulimit -n)",
		   x->path, x->peers, (unsigned long long)need);
	return 1;
}

/* A VM sends nothing. Its socket is readable when its QEMU has ended. */
static void look_at(struct exchange *x, unsigned int id)
{
	char byte;
	ssize_t n = recv(x->peer[id].socket, &byte, 1, MSG_DONTWAIT);

	if (n > 0)
		drop(x, id, "is no ivshmem device: it has sent something");
	else if (!n || (errno != EAGAIN && errno != EINTR))
		drop(x, id, "has ended");
}

static int serve(struct exchange *x)
{
	struct pollfd fds[SG_BELLS_PEERS_MAX + 2];
	unsigned int i;

	for (;;) {
		fds[0] = (struct pollfd){ .fd = x->signals, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = x->listener, .events = POLLIN };
		for (i = 0; i < x->peers; i++)	/* poll() ignores -1 */
			fds[2 + i] = (struct pollfd){ .fd = x->peer[i].socket, .events = POLLIN };
		if (poll(fds, 2 + x->peers, -1) < 0 && errno != EINTR)
			return bells_error(x->path, "poll");
		if (fds[0].revents)
			return 0;
		for (i = 0; i < x->peers; i++)
			if (fds[2 + i].revents && x->peer[i].socket == fds[2 + i].fd)
				look_at(x, i);
		if (fds[1].revents)
			admit(x);
	}
}

static int describe(struct call *c, struct exchange *x)
{
	char memory[PATH_MAX];
	struct target t;
	struct sg_vol vol;

	x->page = (struct sg_bells_page){
		.magic = SG_BELLS_MAGIC, .version = SG_BELLS_VERSION, .peers = (u16)x->peers,
	};
	do
		sg_random(&x->page.exchange, sizeof(x->page.exchange));
	while (!x->page.exchange);
	if (!c->argc)
		return 0;
	if (member_look_on(&t, &vol, mounted_memory(c->argv[0], memory) ? memory : c->argv[0]))
		return 1;
	memcpy(x->page.uuid, vol.sb.uuid, sizeof(x->page.uuid));
	return target_close(&t) ? 1 : 0;
}

int cmd_bells(struct call *c)
{
	struct exchange *x = calloc(1, sizeof(*x));
	unsigned int i;
	int err;

	if (!x)
		return bells_error(c->volume, "no memory");
	x->path = c->volume;
	x->kernel = -1;
	x->peers = c->peers ? (unsigned int)c->peers : SG_BELLS_PEERS;
	for (i = 0; i < SG_BELLS_PEERS_MAX; i++)
		x->peer[i].socket = -1;
	err = describe(c, x) ?: allow_descriptors(x) ?: make_memory(x) ?: catch_signals(x) ?:
	      connect_host(x, c->argc ? c->argv[0] : NULL) ?: listen_at(x);
	if (!err) {
		err = serve(x);
		unlink(x->path);
	}
	free(x);	/* the descriptors end with the process */
	return err;
}
