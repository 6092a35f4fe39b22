// SPDX-License-Identifier: Apache-2.0
/*
 * Traffic between two systems whose content is checked, and its speed.
 *
 *   netload serve PORT				serves all of the others, TCP and UDP, until killed
 *   netload send HOST PORT BYTES FLOWS		sends so many bytes over each connection
 *   netload fetch HOST PORT BYTES FLOWS		the same, from the server
 *   netload hold HOST PORT SECONDS		sends for so long; prints the longest pause, in ms
 *   netload rr HOST PORT SECONDS SIZE		requests and answers in turn: prints their rate
 *   netload crr HOST PORT SECONDS SIZE		the same, with a connection for each
 *   netload udprr HOST PORT SECONDS SIZE	the same by UDP
 *
 * The content of a connection is a sequence that both ends compute.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK	(256u << 10)

struct order {
	char kind;		/* 's'end, 'f'etch, 'e'cho */
	char pad[7];
	uint64_t bytes, seed;
};

static uint64_t block[2][BLOCK / 8];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- content ---------------------------------------------------------------------------------- */

/* The content is a repetition of words that depend on the seed and on the number of the block. */
static void fill(uint64_t *to, uint64_t seed, uint64_t n)
{
	uint64_t x = (seed + n * 0x9e3779b97f4a7c15ull) | 1;
	unsigned int i;

	for (i = 0; i < BLOCK / 8; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		to[i] = x;
	}
}

static void put(int fd, const void *from, size_t len)
{
	while (len) {
		ssize_t n = send(fd, from, len, MSG_NOSIGNAL);

		if (n <= 0)
			die("send");
		from = (const char *)from + n;
		len -= (size_t)n;
	}
}

/* Returns the bytes that came before the end of the connection. */
static size_t get(int fd, void *to, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = recv(fd, (char *)to + done, len - done, 0);

		if (n < 0)
			die("recv");
		if (!n)
			break;
		done += (size_t)n;
	}
	return done;
}

/* Every 16th block is new, so that the time is that of the network. */
#define FRESH	16

static void put_content(int fd, uint64_t seed, uint64_t bytes)
{
	uint64_t n, len;

	for (n = 0; bytes; n++, bytes -= len) {
		len = bytes < BLOCK ? bytes : BLOCK;
		if (n % FRESH == 0)
			fill(block[0], seed, n / FRESH);
		put(fd, block[0], len);
	}
}

/* Returns the bytes up to the first wrong one, or up to the end. */
static uint64_t get_content(int fd, uint64_t seed, uint64_t bytes)
{
	uint64_t n, len, done = 0;

	for (n = 0; done < bytes; n++, done += len) {
		len = bytes - done < BLOCK ? bytes - done : BLOCK;
		if (n % FRESH == 0)
			fill(block[0], seed, n / FRESH);
		len = get(fd, block[1], len);
		if (!len || memcmp(block[0], block[1], len))
			break;
	}
	return done;
}

/* --- server ----------------------------------------------------------------------------------- */

static void echo(int fd, uint64_t size)
{
	while (get(fd, block[0], size) == size)
		put(fd, block[0], size);
}

static void serve_one(int fd)
{
	struct order o;
	uint64_t done;
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (get(fd, &o, sizeof(o)) != sizeof(o))
		exit(0);
	if (o.kind == 's') {
		done = get_content(fd, o.seed, o.bytes);
		put(fd, &done, sizeof(done));
	} else if (o.kind == 'f') {
		put_content(fd, o.seed, o.bytes);
	} else {
		echo(fd, o.bytes < BLOCK ? o.bytes : BLOCK);
	}
	exit(0);
}

static int bound(int kind, int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, kind | SOCK_CLOEXEC, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, (void *)&at, sizeof(at)))
		die("bind");
	return fd;
}

static void serve_udp(int port)
{
	int fd = bound(SOCK_DGRAM, port);
	struct sockaddr_in from;
	socklen_t len;
	ssize_t n;

	for (;;) {
		len = sizeof(from);
		n = recvfrom(fd, block[0], sizeof(block[0]), 0, (void *)&from, &len);
		if (n >= 0)
			sendto(fd, block[0], (size_t)n, 0, (void *)&from, len);
	}
}

static void serve(int port)
{
	int door = bound(SOCK_STREAM, port), fd;

	signal(SIGCHLD, SIG_IGN);
	if (!fork())
		serve_udp(port);
	if (listen(door, 128))
		die("listen");
	for (;;) {
		fd = accept(door, NULL, NULL);
		if (fd < 0)
			continue;
		if (!fork())
			serve_one(fd);
		close(fd);
	}
}

/* --- client ----------------------------------------------------------------------------------- */

static struct sockaddr_in target;

static int dial(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || connect(fd, (void *)&target, sizeof(target)))
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

static void one_flow(char kind, uint64_t bytes, uint64_t seed)
{
	struct order o = { .kind = kind, .bytes = bytes, .seed = seed };
	uint64_t done = 0;
	int fd = dial();

	put(fd, &o, sizeof(o));
	if (kind == 's') {
		put_content(fd, seed, bytes);
		if (get(fd, &done, sizeof(done)) != sizeof(done))
			die("the server's answer");
	} else {
		done = get_content(fd, seed, bytes);
	}
	if (done != bytes) {
		fprintf(stderr, "wrong content, or the end, after %llu of %llu bytes\n",
			(unsigned long long)done, (unsigned long long)bytes);
		exit(1);
	}
	exit(0);
}

static int flows(char kind, uint64_t bytes, int n)
{
	double start = now();
	int i, status, bad = 0;

	for (i = 0; i < n; i++)
		if (!fork())
			one_flow(kind, bytes, (uint64_t)i * 7919 + (uint64_t)getpid());
	for (i = 0; i < n; i++)
		if (wait(&status) < 0 || status)
			bad = 1;
	if (!bad)
		printf("%.1f MB/s\n", (double)bytes * n / 1e6 / (now() - start));
	return bad;
}

/* Sends small blocks and awaits each echo, through any change of the way. */
static int hold(double seconds)
{
	struct order o = { .kind = 'e', .bytes = 1024 };
	double start = now(), last = start, longest = 0, t;
	int fd = dial();

	put(fd, &o, sizeof(o));
	while (last - start < seconds) {
		fill(block[1], (uint64_t)(last * 1e6), 1);
		put(fd, block[1], o.bytes);
		if (get(fd, block[0], o.bytes) != o.bytes ||
		    memcmp(block[0], block[1], o.bytes)) {
			fprintf(stderr, "wrong content, or the end\n");
			return 1;
		}
		t = now();
		longest = t - last > longest ? t - last : longest;
		last = t;
		usleep(1000);
	}
	printf("%.0f\n", longest * 1000);
	return 0;
}

static double rate(uint64_t n, double start)
{
	return (double)n / (now() - start);
}

static int rr(double seconds, uint64_t size, int anew)
{
	struct order o = { .kind = 'e', .bytes = size };
	double start = now();
	int fd = -1;
	uint64_t n;

	for (n = 0; now() - start < seconds; n++) {
		if (fd < 0) {
			fd = dial();
			put(fd, &o, sizeof(o));
		}
		put(fd, block[0], size);
		if (get(fd, block[1], size) != size)
			die("the answer");
		if (anew) {
			close(fd);
			fd = -1;
		}
	}
	printf("%.0f /s\n", rate(n, start));
	return 0;
}

static int udp_rr(double seconds, uint64_t size)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t n = 0, lost = 0;
	double start = now();

	if (fd < 0 || connect(fd, (void *)&target, sizeof(target)))
		die("connect");
	while (now() - start < seconds) {
		block[0][0] = n + lost;
		if (send(fd, block[0], size, 0) != (ssize_t)size)
			die("send");
		if (poll(&p, 1, 1000) == 1 && recv(fd, block[1], size, 0) == (ssize_t)size)
			n++;
		else
			lost++;
	}
	printf("%.0f /s\n", rate(n, start));
	if (lost > 3)
		fprintf(stderr, "%llu lost\n", (unsigned long long)lost);
	return lost > 3;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc == 3 && !strcmp(what, "serve"))
		serve(atoi(argv[2]));
	if (argc < 5) {
		fprintf(stderr, "see netload.c\n");
		return 2;
	}
	target.sin_family = AF_INET;
	target.sin_port = htons((uint16_t)atoi(argv[3]));
	if (!inet_aton(argv[2], &target.sin_addr))
		die(argv[2]);
	if (argc == 6 && !strcmp(what, "send"))
		return flows('s', strtoull(argv[4], NULL, 0), atoi(argv[5]));
	if (argc == 6 && !strcmp(what, "fetch"))
		return flows('f', strtoull(argv[4], NULL, 0), atoi(argv[5]));
	if (!strcmp(what, "hold"))
		return hold(atof(argv[4]));
	if (argc == 6 && strtoull(argv[5], NULL, 0) <= BLOCK) {
		if (!strcmp(what, "rr"))
			return rr(atof(argv[4]), strtoull(argv[5], NULL, 0), 0);
		if (!strcmp(what, "crr"))
			return rr(atof(argv[4]), strtoull(argv[5], NULL, 0), 1);
		if (!strcmp(what, "udprr"))
			return udp_rr(atof(argv[4]), strtoull(argv[5], NULL, 0));
	}
	fprintf(stderr, "see netload.c\n");
	return 2;
}
