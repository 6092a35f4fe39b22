// SPDX-License-Identifier: Apache-2.0
/* stargate-ring: rings of records for shells. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "tool.h"
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
"  dial NAME              the same with the process that listens by NAME\n"
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
"      --block BYTES      (send, bench) records of so many bytes, not lines\n"
"      --readers N        (bench) only with so many receivers: 1 to 64\n"
"      --writers N        (bench) and senders\n"
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

static const struct command {
	const char *name, *options;
	int (*run)(struct call *c);
	bool named;
} commands[] = {
	{ "list", "jO", cmd_list, false },
	{ "create", "SsmLX", cmd_create, true },
	{ "rm", "", cmd_rm, true },
	{ "show", "j", cmd_show, true },
	{ "stat", "", cmd_show, true },
	{ "reset", "", cmd_reset, true },
	{ "send", "tbg", cmd_send, true },
	{ "recv", "tnGR", cmd_recv, true },
	{ "pipe", "S", cmd_pipe, true },
	{ "listen", "tm", cmd_listen, true },
	{ "dial", "t", cmd_dial, true },
	{ "bench", "bnjrw", cmd_bench, false },
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

int trouble(const struct call *c, int err)
{
	bool of_volume = !c->name || err == ENODEV || err == EXDEV || err == EROFS;

	if (of_volume && !c->volume)
		tool_error("%s", err == ENODEV ? "no StargateFS volume is mounted" : stargate_why(err));
	else
		tool_error("%s: %s", of_volume ? c->volume : c->name,
			   err == EBUSY ? "another process receives from it already" :
			   err == EAGAIN ? "there is no record, or no room, at this moment" :
			   stargate_why(err));
	return err == EAGAIN || err == ETIMEDOUT ? STATUS_TIMEOUT : 1;
}

/* Seconds with up to nine places. */
static bool parse_seconds(const char *text, uint64_t *until)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end || !(s >= 0) || s > 1e9)
		return false;
	*until = s > 0 ? stargate_in((uint64_t)(s * 1e9)) : STARGATE_TRY;
	return true;
}

static bool take_value(struct call *c, int opt, const char *text)
{
	u64 n;

	switch (opt) {
	case 't':
		return parse_seconds(text, &c->until);
	case 'm':
		if (!parse_number(text, 8, 0777, &n))
			return false;
		c->mode = (unsigned int)n;
		return true;
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
	case 's': c->flags |= STARGATE_SINGLE; break;
	case 'L': c->flags |= STARGATE_LAST_USER; break;
	case 'X': c->how |= STARGATE_EXCLUSIVE; break;
	case 'G': c->tags = true; break;
	case 'R': c->raw = true; break;
	case 'O': c->names = true; break;
	case 'j': c->json = true; break;
	}
}

static const struct command *find(const char *word)
{
	unsigned int i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, word))
			return &commands[i];
	return NULL;
}

/* The option that a line of the usage is about, or 0. */
static int option_of(const char *line)
{
	const char *name = strstr(line, "--");
	unsigned int i;
	size_t n;

	if (strspn(line, " ") > 6 || !name || name > strchrnul(line, '\n'))
		return 0;
	n = strcspn(name += 2, " ,\n");
	for (i = 0; options[i].name; i++)
		if (strlen(options[i].name) == n && !strncmp(options[i].name, name, n))
			return options[i].val;
	return 0;
}

/* Prints the lines of the usage for @cmd, for its options, and for those of all commands. */
static int help_of(const struct command *cmd)
{
	const char *line, *end;
	size_t n = strlen(cmd->name), indent;
	bool ours = false;
	int option;

	printf("Usage: stargate-ring [OPTION]... %s%s\n", cmd->name, cmd->named ? " NAME" : "");
	for (line = usage; *line; line = end + 1) {
		end = strchrnul(line, '\n');
		option = option_of(line);
		indent = strspn(line, " ");
		if (option)
			ours = strchr("vhV", option) || strchr(cmd->options, option);
		else if (indent <= 2)
			ours = indent == 2 && !strncmp(line + 2, cmd->name, n) &&
			       line[2 + n] == ' ';
		if (ours)
			fwrite(line, 1, (size_t)(end + 1 - line), stdout);
	}
	return tool_end(0);
}

static int refuse_value(int opt)
{
	static const struct {
		int opt;
		const char *allowed;
	} rules[] = {
		{ 't', "a number of seconds" }, { 'm', "octal, up to 777" }, { 'S', "64K to 64M" },
		{ 'b', "1 to 32M - 16" }, { 'g', "a number up to 4294967295" },
		{ 'n', "a number from 1 on" }, { 'r', "1 to 64" }, { 'w', "1 to 64" },
	};
	const char *name = "", *allowed = "";
	unsigned int i;

	for (i = 0; options[i].name; i++)
		if (options[i].val == opt)
			name = options[i].name;
	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].opt == opt)
			allowed = rules[i].allowed;
	return tool_value_error(name, optarg, opt == 'S' || opt == 'b', allowed);
}

/*
 * 0, an exit status, or -1: all is done, without an error. @given: letters of the options that were
 * given. @cmd: the command before them, or NULL.
 */
static int parse_options(struct call *c, const struct command *cmd, int argc, char **argv,
			 char *given)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "+:v:t:n:jhV", options, NULL)) != -1) {
		if (opt == 'h')
			return (cmd ? help_of(cmd) : tool_help(usage)) ?: -1;
		if (opt == 'V')
			return tool_version() ?: -1;
		if (opt == ':' || opt == '?')
			return tool_option_error(opt, argv);
		if (opt == 'v') {
			c->volume = optarg;
			continue;
		}
		if (strchr("tnSmbgrw", opt) && !take_value(c, opt, optarg))
			return refuse_value(opt);
		take_flag(c, opt);
		if (!strchr(given, opt))
			given[strlen(given)] = (char)opt;
	}
	return 0;
}

/* The arguments after the command's name: more options, and NAME. */
static int parse_rest(struct call *c, const struct command *cmd, int argc, char **argv, char *given)
{
	bool plain = false;
	int err;

	while (optind < argc) {
		plain |= !strcmp(argv[optind - 1], "--");
		if (plain || argv[optind][0] != '-' || !argv[optind][1]) {
			if (c->name || !cmd->named)
				return tool_usage_error("%s: too many arguments: '%s'", cmd->name,
							argv[optind]);
			c->name = argv[optind++];
			continue;
		}
		err = parse_options(c, cmd, argc, argv, given);
		if (err)
			return err;
	}
	if (cmd->named && !c->name)
		return tool_usage_error("%s: NAME is missing", cmd->name);
	for (; *given; given++)
		if (!strchr(cmd->options, *given))
			return tool_usage_error("%s: an option is not possible with this command", cmd->name);
	return 0;
}

int main(int argc, char **argv)
{
	struct call c = { .mode = 0600, .size = 1 << 20, .until = STARGATE_FOREVER };
	const struct command *cmd;
	char given[32] = "";
	int err;

	tool_begin("stargate-ring", argv);
	opterr = 0;
	err = parse_options(&c, NULL, argc, argv, given);
	if (err)
		return err < 0 ? 0 : err;
	if (optind == argc)
		return tool_usage_error("there is no command");
	if (!strcmp(argv[optind], "help")) {
		cmd = optind + 1 < argc ? find(argv[optind + 1]) : NULL;
		if (optind + 1 < argc && !cmd)
			return tool_usage_error("there is no command '%s'", argv[optind + 1]);
		return cmd ? help_of(cmd) : tool_help(usage);
	}
	cmd = find(argv[optind++]);
	if (!cmd)
		return tool_usage_error("there is no command '%s'", argv[optind - 1]);
	err = parse_rest(&c, cmd, argc, argv, given);
	if (err)
		return err < 0 ? 0 : err;
	c.json |= !strcmp(cmd->name, "stat");
	return tool_end(cmd->run(&c));
}
