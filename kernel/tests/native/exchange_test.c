// SPDX-License-Identifier: Apache-2.0
/*
 * The exchange of doorbells (`stargatectl bells`): what a device gets, who rings whom, devices that
 * end, that send something, or that are too many; and servers that die.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "systems.h"
#include "uapi/bells.h"

#define PEERS	4

static char path[100];

/* --- the server ------------------------------------------------------------------------------- */

static pid_t start(void)
{
	const char *tools = getenv("SG_TOOLS");
	char program[300];
	pid_t pid;

	snprintf(program, sizeof(program), "%s/stargatectl", tools ? tools : "build/tools");
	pid = test_fork();
	CHECK(pid >= 0);
	if (!pid) {
		freopen("/dev/null", "w", stdout);
		execl(program, "stargatectl", "bells", "--peers", "4", path, NULL);
		_exit(127);
	}
	return pid;
}

static int end_of(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* --- a device --------------------------------------------------------------------------------- */

struct device {
	int socket;
	s64 id;
	struct sg_bells_page page;
	int own[PEERS], other[PEERS];
};

/* Receives a message within five seconds. False: the server has closed the connection. */
static bool receive(const struct device *d, s64 *number, int *fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	u64 wire = 0;
	struct iovec data = { .iov_base = &wire, .iov_len = sizeof(wire) };
	struct msghdr msg = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control) };
	struct pollfd ready = { .fd = d->socket, .events = POLLIN };
	struct cmsghdr *rights;
	ssize_t n;

	CHECK_EQ(poll(&ready, 1, 5000), 1);
	n = recvmsg(d->socket, &msg, MSG_WAITALL);
	if (n <= 0)
		return false;
	CHECK_EQ(n, sizeof(wire));
	*number = (s64)le64toh(wire);
	*fd = -1;
	rights = CMSG_FIRSTHDR(&msg);
	if (rights)
		memcpy(fd, CMSG_DATA(rights), sizeof(*fd));
	return true;
}

static s64 told(const struct device *d, int *fd)
{
	s64 number;

	CHECK(receive(d, &number, fd));
	return number;
}

static struct device connected(void)
{
	struct device d = { .socket = socket(AF_UNIX, SOCK_STREAM, 0) };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	unsigned int i;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	for (i = 0; connect(d.socket, (struct sockaddr *)&at, sizeof(at)); i++) {
		CHECK(i < 2000);
		sg_sleep_us(5000);
	}
	for (i = 0; i < PEERS; i++)
		d.own[i] = d.other[i] = -1;
	return d;
}

/* Connects as QEMU does. @others: the number of devices that are there. */
static struct device join(unsigned int others)
{
	struct device d = connected();
	unsigned int i;
	s64 number;
	int fd;

	CHECK_EQ(told(&d, &fd), 0);		/* the protocol's version */
	CHECK_EQ(fd, -1);
	d.id = told(&d, &fd);
	CHECK(d.id >= 0 && d.id < PEERS);
	CHECK_EQ(told(&d, &fd), -1);		/* the memory */
	CHECK_EQ(pread(fd, &d.page, sizeof(d.page), 0), sizeof(d.page));
	close(fd);
	for (i = 0; i < others; i++) {
		number = told(&d, &fd);
		CHECK(number >= 0 && number < PEERS && number != d.id && fd >= 0);
		CHECK_EQ(d.other[number], -1);	/* each other one once */
		d.other[number] = fd;
	}
	for (i = 0; i < PEERS; i++) {
		CHECK_EQ(told(&d, &d.own[i]), d.id);
		CHECK(d.own[i] >= 0);
	}
	return d;
}

/* Another device has joined. */
static void meet(struct device *d, const struct device *other)
{
	int fd;

	CHECK_EQ(told(d, &fd), other->id);
	CHECK(fd >= 0);
	d->other[other->id] = fd;
}

static void leave(struct device *d)
{
	unsigned int i;

	close(d->socket);
	for (i = 0; i < PEERS; i++) {
		close(d->own[i]);
		if (d->other[i] >= 0)
			close(d->other[i]);
	}
}

static void part(struct device *d, s64 id)
{
	int fd;

	CHECK_EQ(told(d, &fd), id);
	CHECK_EQ(fd, -1);
	close(d->other[id]);
	d->other[id] = -1;
}

/* Returns which senders have rung the device since the last call, as bits. */
static unsigned int heard(const struct device *d)
{
	unsigned int bits = 0, i;
	u64 n;

	for (i = 0; i < PEERS; i++)
		if (read(d->own[i], &n, sizeof(n)) == sizeof(n))
			bits |= 1u << i;
	return bits;
}

static void ring(const struct device *d, const struct device *to)
{
	u64 one = 1;

	CHECK_EQ(write(d->other[to->id], &one, sizeof(one)), sizeof(one));
}

/* --- tests ------------------------------------------------------------------------------------ */

static void rings(void)
{
	struct device d[PEERS], again;
	unsigned int i, k;
	pid_t server = start();

	for (i = 0; i < PEERS; i++) {
		d[i] = join(i);
		for (k = 0; k < i; k++)
			meet(&d[k], &d[i]);
		CHECK_EQ(d[i].page.magic, SG_BELLS_MAGIC);
		CHECK_EQ(d[i].page.version, SG_BELLS_VERSION);
		CHECK_EQ(d[i].page.peers, PEERS);
		CHECK(d[i].page.exchange && d[i].page.exchange == d[0].page.exchange);
	}
	/* each pair: the receiver hears the sender's own vector, and no other device hears */
	for (i = 0; i < PEERS; i++)
		for (k = 0; k < PEERS; k++) {
			if (i == k)
				continue;
			ring(&d[i], &d[k]);
			CHECK_EQ(heard(&d[k]), 1u << d[i].id);
			CHECK_EQ(heard(&d[i]), 0);
		}

	/* one more than there are numbers is refused; then a number is free again */
	again = connected();
	CHECK(!receive(&again, &(s64){ 0 }, &(int){ 0 }));
	close(again.socket);
	leave(&d[2]);
	for (i = 0; i < PEERS; i++)
		if (i != 2)
			part(&d[i], d[2].id);
	d[2] = join(PEERS - 1);
	for (i = 0; i < PEERS; i++)
		if (i != 2)
			meet(&d[i], &d[2]);
	ring(&d[2], &d[0]);
	CHECK_EQ(heard(&d[0]), 1u << d[2].id);

	/* a device that sends a byte is removed, and the others go on */
	CHECK_EQ(write(d[1].socket, "x", 1), 1);
	for (i = 0; i < PEERS; i++)
		if (i != 1)
			part(&d[i], d[1].id);
	leave(&d[1]);
	ring(&d[3], &d[0]);
	CHECK_EQ(heard(&d[0]), 1u << d[3].id);

	/* the bells work on without the server */
	CHECK_OK(kill(server, SIGTERM));
	CHECK_EQ(end_of(server), 0);
	CHECK(access(path, F_OK));
	ring(&d[0], &d[3]);
	CHECK_EQ(heard(&d[3]), 1u << d[0].id);
	for (i = 0; i < PEERS; i++)
		if (i != 1)
			leave(&d[i]);
}

/* A device that never reads does not delay others, whatever happens meanwhile. */
static void deaf(void)
{
	struct device d, other;
	pid_t server = start();
	unsigned int i;

	d = join(0);
	for (i = 0; i < 400; i++) {
		other = connected();
		CHECK_EQ(told(&other, &(int){ 0 }), 0);
		close(other.socket);
	}
	CHECK_OK(kill(server, SIGTERM));
	CHECK_EQ(end_of(server), 0);
	leave(&d);
}

static void servers(void)
{
	struct device d;
	pid_t server = start(), second;

	d = join(0);
	second = start();
	CHECK_EQ(end_of(second), 1);	/* the socket is served */
	leave(&d);
	d = join(0);
	leave(&d);
	CHECK_OK(kill(server, SIGKILL));
	CHECK_EQ(end_of(server), -SIGKILL);
	CHECK_OK(access(path, F_OK));
	server = start();		/* replaces the socket of the dead server */
	d = join(0);
	leave(&d);
	CHECK_OK(kill(server, SIGTERM));
	CHECK_EQ(end_of(server), 0);
}

int main(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%s/sg-exchange-%d", tmp ? tmp : "/tmp", (int)getpid());
	test_within(120, "the exchange");
	rings();
	deaf();
	servers();
	test_within(0, NULL);
	return test_done();
}
