// SPDX-License-Identifier: Apache-2.0
/*
 * The command `status`: the daemon writes its tables as text or as JSON to each connection to its
 * socket.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include "vsched.h"

static const struct sockaddr_un address = { AF_UNIX, VS_SOCKET };

int vs_status_listen(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0077);

	/* This daemon has the lock, so an old socket belongs to a daemon that has ended. */
	unlink(VS_SOCKET);
	if (fd >= 0 && (bind(fd, (const void *)&address, sizeof(address)) || listen(fd, 8))) {
		close(fd);
		fd = -1;
	}
	umask(mask);
	if (fd < 0)
		fprintf(stderr, "stargate-vsched: %s: %s\n", VS_SOCKET, strerror(errno));
	return fd;
}

/* Returns the upper bound, in us, of the bucket that contains the given percentile of all events.
 * */
static u64 below(const u64 *late, unsigned int percent)
{
	u64 all = 0, seen = 0;
	u32 i;

	for (i = 0; i < VS_BUCKETS; i++)
		all += late[i];
	for (i = 0; i < VS_BUCKETS; i++) {
		seen += late[i];
		if (all && seen * 100 >= all * percent)
			return 1ULL << i;
	}
	return 0;
}

static void print_json(FILE *out, const struct vs_options *o, const struct vs_kernel *k)
{
	const char *comma = "";
	u32 i, n;

	fprintf(out, "{\"watch\":%s,\"vms\":[", o->watch ? "true" : "false");
	for (i = 0; i < VS_VMS; i++) {
		const struct vs_vm *vm = &k->vms[i];
		const struct vs_guest *g = &vs_guests[i];

		if (!vm->used)
			continue;
		fprintf(out, "%s{\"name\":\"%s\",\"pid\":%d,\"vcpus\":%u,\"weight\":%u,", comma,
			g->name, g->tgid, vm->vcpus, vm->weight);
		fprintf(out, "\"left\":\"%s\",\"plain\":%s,\"share\":%.4f,\"ran_ns\":%lu,",
			g->left ? g->left : "", g->plain ? "true" : "false", g->share, vm->ran);
		fprintf(out, "\"events\":%lu,\"boosts\":%lu,\"boosted_ns\":%lu,", vm->events,
			vm->boosts, vm->boosted);
		fprintf(out, "\"refused\":%lu,\"victims\":%lu,\"late\":[", vm->refused, vm->victims);
		for (n = 0; n < VS_BUCKETS; n++)
			fprintf(out, "%s%lu", n ? "," : "", vm->late[n]);
		fprintf(out, "]}");
		comma = ",";
	}
	fprintf(out, "]}\n");
}

static void print_text(FILE *out, const struct vs_options *o, const struct vs_kernel *k)
{
	u32 i;

	if (o->watch)
		fprintf(out, "The kernel's own scheduler runs the vCPUs; this daemon measures.\n");
	fprintf(out, "%-20s %8s %5s %6s %6s %9s %8s %8s %9s %9s\n", "VM", "pid", "vCPUs", "weight",
		"share", "boosts", "refused", "victims", "median us", "99 % us");
	for (i = 0; i < VS_VMS; i++) {
		const struct vs_vm *vm = &k->vms[i];
		const struct vs_guest *g = &vs_guests[i];

		if (!vm->used)
			continue;
		fprintf(out, "%-20.20s %8d %5u %6u ", g->name, g->tgid, vm->vcpus, vm->weight);
		if (g->left)
			fprintf(out, "left to the kernel: %s\n", g->left);
		else
			fprintf(out, "%5.1f%% %9lu %8lu %8lu %9lu %9lu\n", g->share * 100, vm->boosts,
				vm->refused, vm->victims, below(vm->late, 50), below(vm->late, 99));
	}
}

void vs_status_answer(int fd, const struct vs_options *o, const struct vs_kernel *k)
{
	/* A slow client must not delay the daemon. */
	const struct timeval patience = { .tv_usec = 200000 };
	int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	char word = 0;
	FILE *out;

	if (client < 0)
		return;
	setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (read(client, &word, 1) != 1 || !(out = fdopen(client, "w"))) {
		close(client);
		return;
	}
	if (word == 'j')
		print_json(out, o, k);
	else
		print_text(out, o, k);
	fclose(out);
}

int vs_status_ask(bool json)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char block[4096];
	ssize_t got = -1;

	if (fd < 0 || connect(fd, (const void *)&address, sizeof(address))) {
		fprintf(stderr, "stargate-vsched: no daemon answers on %s (%s): start one with "
			"'stargate-vsched run'\n", VS_SOCKET, strerror(errno));
		return VS_TROUBLE;
	}
	if (write(fd, json ? "j" : "t", 1) == 1)
		while ((got = read(fd, block, sizeof(block))) > 0)
			fwrite(block, 1, got, stdout);
	close(fd);
	if (got < 0 || fflush(stdout)) {
		fprintf(stderr, "stargate-vsched: status: %s\n", strerror(errno));
		return VS_TROUBLE;
	}
	return VS_OK;
}
