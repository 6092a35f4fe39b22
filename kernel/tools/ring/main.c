// SPDX-License-Identifier: Apache-2.0
/* stargate-ring: rings of records for shells. */
#include <errno.h>
#include "objects.h"
#include "ring.h"

static const char usage[] =
"Usage: stargate-ring [OPTION]... COMMAND [NAME]\n"
"Records and streams between all systems that use a StargateFS volume.\n"
"\n"
"  list                   list all rings\n"
"  create NAME            create a ring, unless it exists\n"
"  rm NAME                remove it; a process that has it open keeps it\n"
"  show NAME              show its size, its use, and lost claims\n"
"  stat NAME              the same as JSON\n"
"  reset NAME             make it empty, even while processes use it\n"
"  send NAME              send each line of standard input as a record\n"
"  recv NAME              receive records, and print each as a line\n"
"  pipe NAME              join two shells: what one of them reads from its\n"
"                         standard input, the other one prints, both ways\n"
"  listen NAME            the same with the first process that dials NAME\n"
"  dial NAME              the same with the process that listens on NAME\n"
"  bench                  measure records of several sizes, then how many\n"
"                         one, two and four processes pass to as many others\n"
"  help [COMMAND]         show this help, or the help on one command\n"
"\n"
"  -v, --volume PATH      any path on the volume; else the first one mounted\n"
"  -t, --timeout SECONDS  (send, recv) wait no longer for a record, or for\n"
"                         room; (listen, dial) for the other process;\n"
"                         0: not at all\n"
"  -n, --count N          (recv, bench) number of records\n"
"      --size BYTES       (create, pipe) of the ring: 64K to 64M; else 1M\n"
"      --single           (create) one process at a time receives, so that all\n"
"                         records arrive in order\n"
"      --mode MODE        (create, listen) permissions, octal; else 600\n"
"      --last-user        (create) removed when its last user closes it\n"
"      --exclusive        (create) fail if it exists\n"
"      --block BYTES      (send, bench) records of this length, instead of lines\n"
"      --readers N        (bench) only with N receivers: 1 to 64\n"
"      --writers N        (bench) only with N senders: 1 to 64\n"
"      --tag N            (send) a number beside each record\n"
"      --tags             (recv) print the number before each record\n"
"      --raw              (recv) print records without an end of line\n"
"      --names            (list) only names, one a line, escaped as messages are\n"
"  -j, --json             (list, show, bench) as JSON\n"
"  -h, --help\n"
"  -V, --version\n"
"\n"
"Exit status: 0; 1 trouble; 2 wrong usage; 124 time-out.\n"
"See stargate-ring(1).\n";

static const struct object_command commands[] = {
	{ "list", "jO", cmd_list, false, NULL },
	{ "create", "SsmLX", cmd_create, true, NULL },
	{ "rm", "", cmd_rm, true, NULL },
	{ "show", "j", cmd_show, true, NULL },
	{ "stat", "", cmd_show, true, NULL },
	{ "reset", "", cmd_reset, true, NULL },
	{ "send", "tbg", cmd_send, true, NULL },
	{ "recv", "tnGR", cmd_recv, true, NULL },
	{ "pipe", "S", cmd_pipe, true, NULL },
	{ "listen", "tm", cmd_listen, true, NULL },
	{ "dial", "t", cmd_dial, true, NULL },
	{ "bench", "bnjrw", cmd_bench, false, NULL },
	{ 0 }
};

static const struct option options[] = {
	{ "volume", required_argument, NULL, 'v' }, { "timeout", required_argument, NULL, 't' },
	{ "count", required_argument, NULL, 'n' }, { "size", required_argument, NULL, 'S' },
	{ "single", no_argument, NULL, 's' }, { "mode", required_argument, NULL, 'm' },
	{ "last-user", no_argument, NULL, 'L' }, { "exclusive", no_argument, NULL, 'X' },
	{ "readers", required_argument, NULL, 'r' }, { "writers", required_argument, NULL, 'w' },
	{ "block", required_argument, NULL, 'b' }, { "tag", required_argument, NULL, 'g' },
	{ "tags", no_argument, NULL, 'G' }, { "raw", no_argument, NULL, 'R' },
	{ "names", no_argument, NULL, 'O' }, { "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }, { 0 }
};

static const struct object_rule rules[] = {
	{ 't', "a number of seconds", false }, { 'm', "octal, up to 777", false },
	{ 'S', "64K to 64M", true }, { 'b', "1 to 32M - 16", true },
	{ 'g', "a number up to 4294967295", false }, { 'n', "a number from 1 on", false },
	{ 'r', "1 to 64", false }, { 'w', "1 to 64", false }, { 0 }
};

int trouble(const struct call *c, int err)
{
	const char *why = NULL;

	if (err == EBUSY)
		why = "another process receives from it already";
	else if (err == EAGAIN)
		why = "there is no record, or no room, at this moment";
	return object_trouble(&c->o, err, why, 1);
}

static bool take_value(struct call *c, int opt, const char *text)
{
	switch (opt) {
	case 'S':
		return parse_size(text, &c->size) && c->size && c->size <= 64 << 20;
	case 'b':
		return parse_size(text, &c->block) && c->block && c->block <= (32 << 20) - 16;
	case 'g':
		return parse_number(text, 10, ~0u, &c->tag);
	case 'r':
		return parse_number(text, 10, 64, &c->readers) && c->readers;
	case 'w':
		return parse_number(text, 10, 64, &c->writers) && c->writers;
	default:
		return parse_number(text, 10, ~0ULL >> 2, &c->count) && c->count;
	}
}

static void take_flag(struct call *c, int opt)
{
	switch (opt) {
	case 's': c->o.flags |= STARGATE_SINGLE; break;
	case 'G': c->tags = true; break;
	case 'R': c->raw = true; break;
	}
}

int main(int argc, char **argv)
{
	static const struct object_program program = {
		.name = "stargate-ring", .usage = usage, .short_options = "+:v:t:n:jhV",
		.options = options, .commands = commands, .rules = rules,
		.value = take_value, .flag = take_flag,
	};
	struct call c = { .o = { .mode = 0600, .until = STARGATE_FOREVER }, .size = 1 << 20 };

	return object_main(&program, &c, argc, argv);
}
