// SPDX-License-Identifier: Apache-2.0
/* stargate-vsched runs vCPUs with a pending interrupt immediately (docs/vcpu-scheduling.md). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
#include "vsched.h"
#include "version.h"

static const char usage[] =
"Usage: stargate-vsched [OPTION]... run|watch|status\n"
"Runs vCPUs with a pending interrupt before others, in the time of their own VM.\n"
"\n"
"  run                schedule all vCPUs of this host, until it is ended\n"
"  watch              measure latencies under the kernel's own scheduler\n"
"  status             show each VM: share, boosts, victims, latencies\n"
"\n"
"      --slice US     (run) length of a turn: 500 to 100000; default 3000\n"
"      --boost US     (run) the longest boost: 50 to 10000; default 500\n"
"      --percent N    (run) part of a VM's share that boosts may use: 0 to 100;\n"
"                     default 80\n"
"      --plain PATTERN (run) no boosts for VMs with such names; may be repeated\n"
"  -j, --json         (status) print JSON\n"
"  -h, --help\n"
"  -V, --version\n"
"\n"
"Exit status: 0 success; 1 failure; 2 wrong usage; 3 no sched_ext in this kernel;\n"
"4 the scheduler has ended, and the kernel's own scheduler runs the vCPUs.\n"
"See stargate-vsched(8).\n";

#define STARVED	15000000000ULL
#define LOOK	2000000000ULL
#define SAMPLE	1000000000ULL

static volatile sig_atomic_t asked_to_end;

static void end(int signal)
{
	(void)signal;
	asked_to_end = 1;
}

static u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static int wrong(const char *fmt, const char *word)
{
	fprintf(stderr, fmt, word);
	fprintf(stderr, "; see stargate-vsched --help\n");
	return VS_USAGE;
}

static bool number(const char *text, u64 least, u64 most, u64 *n)
{
	char *rest;

	errno = 0;
	*n = strtoull(text, &rest, 10);
	return *text >= '0' && *text <= '9' && !*rest && !errno && *n >= least && *n <= most;
}

/*
 * Takes the lock that allows only one daemon at a time. The kernel releases the lock when the
 * process ends.
 */
static int only_one(void)
{
	int fd = open(VS_LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0) {
		fprintf(stderr, "stargate-vsched: %s: %s\n", VS_LOCK, strerror(errno));
		return -1;
	}
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	fprintf(stderr, "stargate-vsched: another daemon runs here: "
		"see 'stargate-vsched status'\n");
	close(fd);
	return -1;
}

/*
 * Returns VS_ENDED if the kernel has ended the scheduler, or if the daemon must end because a vCPU
 * starves.
 */
static int still_runs(struct vs_kernel *k, u64 now)
{
	const struct vs_vcpu *v;

	if (k->ended->kind) {
		fprintf(stderr, "stargate-vsched: the kernel ended the scheduler: %s%s%s; its own "
			"scheduler runs the vCPUs\n", (const char *)k->ended->reason,
			k->ended->message[0] ? ": " : "", (const char *)k->ended->message);
		return VS_ENDED;
	}
	v = vs_guests_starved(k, now, STARVED);
	if (v) {
		fprintf(stderr, "stargate-vsched: vCPU %u of process %u got no processor for 15 s, "
			"because other processes of this host have priority; the kernel's own "
			"scheduler runs all vCPUs again\n", v->id, v->tgid);
		return VS_ENDED;
	}
	return VS_OK;
}

/*
 * Serves requests until the daemon ends. It searches for new vCPUs in the first 100 ms of each 2 s,
 * and continues the search while it finds any. Each vCPU that runs enters its guest, so the search
 * finds it.
 */
static int serve(const struct vs_options *o, struct vs_kernel *k, int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	u64 now = now_ns(), begun = now, sampled = now, looked = now;
	bool more;
	int status = VS_OK;

	vs_kernel_look(true);
	while (!asked_to_end && !status) {
		if (poll(&wait, 1, 100) > 0)
			vs_status_answer(fd, o, k);
		now = now_ns();
		more = vs_guests_look(o, k);
		if (more || now - looked >= LOOK)
			looked = now;
		vs_kernel_look(more || looked == now || now - begun < LOOK);
		if (now - sampled >= SAMPLE) {
			vs_guests_sample(o, k, (now - sampled) / 1e9);
			sampled = now;
		}
		if (!o->watch)
			status = still_runs(k, now);
	}
	return status;
}

static int run(const struct vs_options *o)
{
	const struct sigaction action = { .sa_handler = end };
	struct vs_kernel k = { 0 };
	int lock, fd, status;

	if (geteuid()) {
		fprintf(stderr, "stargate-vsched: only root may schedule vCPUs\n");
		return VS_TROUBLE;
	}
	lock = only_one();
	if (lock < 0)
		return VS_TROUBLE;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	status = vs_kernel_start(o, &k);
	if (status)
		return status;
	fd = vs_status_listen();
	if (fd < 0)
		return VS_TROUBLE;
	printf("stargate-vsched: %s\n", o->watch ? "measures" : "schedules the vCPUs of this host");
	fflush(stdout);
	status = serve(o, &k, fd);
	if (!o->watch)
		vs_guests_release(&k);
	vs_kernel_stop();
	unlink(VS_SOCKET);
	return status;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "slice", required_argument, NULL, 's' }, { "boost", required_argument, NULL, 'b' },
		{ "percent", required_argument, NULL, 'p' }, { "plain", required_argument, NULL, 'k' },
		{ "json", no_argument, NULL, 'j' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' }, { 0 }
	};
	struct vs_options o = {
		.cfg = { .slice = 3000000, .boost = 500000, .period = 100000000 }, .percent = 80,
	};
	bool json = false, tuned = false;
	const char *command;
	u64 n;
	int c;

	while ((c = getopt_long(argc, argv, "jhV", options, NULL)) != -1) {
		tuned = tuned || strchr("sbpk", c);
		switch (c) {
		case 's':
			if (!number(optarg, 500, 100000, &n))
				return wrong("stargate-vsched: --slice %s: not 500 to 100000", optarg);
			o.cfg.slice = n * 1000;
			break;
		case 'b':
			if (!number(optarg, 50, 10000, &n))
				return wrong("stargate-vsched: --boost %s: not 50 to 10000", optarg);
			o.cfg.boost = n * 1000;
			break;
		case 'p':
			if (!number(optarg, 0, 100, &n))
				return wrong("stargate-vsched: --percent %s: not 0 to 100", optarg);
			o.percent = n;
			break;
		case 'k':
			if (o.plains == sizeof(o.plain) / sizeof(*o.plain))
				return wrong("stargate-vsched: --plain %s: too many", optarg);
			o.plain[o.plains++] = optarg;
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return VS_OK;
		case 'V':
			puts("stargate-vsched " SG_RELEASE);
			return VS_OK;
		default:
			fputs("see stargate-vsched --help\n", stderr);
			return VS_USAGE;
		}
	}
	command = optind < argc ? argv[optind++] : NULL;
	if (!command)
		return wrong("stargate-vsched: %s", "no command");
	if (optind < argc)
		return wrong("stargate-vsched: '%s' is an extra argument", argv[optind]);
	if (!strcmp(command, "status"))
		return tuned ? wrong("stargate-vsched: %s takes only --json", command) :
			vs_status_ask(json);
	o.watch = !strcmp(command, "watch");
	if (!o.watch && strcmp(command, "run"))
		return wrong("stargate-vsched: unknown command '%s'", command);
	if (json || (o.watch && tuned))
		return wrong("stargate-vsched: %s does not take that option", command);
	return run(&o);
}
