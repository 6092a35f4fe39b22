// SPDX-License-Identifier: Apache-2.0
/* stargate-sem: shared semaphores for shells. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include "tool.h"
#include "sem.h"

static const char usage[] =
"Usage: stargate-sem [OPTION]... COMMAND [NAME]\n"
"Semaphores and locks for all systems that use a StargateFS volume.\n"
"\n"
"  list                   list all objects\n"
"  create NAME            create an object, unless it exists\n"
"  rm NAME                remove it; a process that has it open keeps it\n"
"  show NAME              show its kind, its value, and which system has it\n"
"  stat NAME              the same as JSON\n"
"  reset NAME             restore its first state, even while it is locked\n"
"  wait NAME              semaphore: decrement it; event: wait until its count\n"
"                         is N; condition: wait for a signal; barrier: wait\n"
"                         until all parties have arrived\n"
"  post NAME              semaphore: increment it; event: count;\n"
"                         condition: signal\n"
"  lock NAME -- COMMAND   run COMMAND with the lock, and exit as it does\n"
"  help [COMMAND]         show this help, or the help on one command\n"
"\n"
"  -v, --volume PATH      any path on the volume; else the first one mounted\n"
"  -t, --timeout SECONDS  wait no longer; 0: not at all\n"
"      --type TYPE        (create) semaphore, mutex, rwlock, condition, barrier,\n"
"                         event; else a semaphore\n"
"      --value N          (create) first value; of a barrier: number of parties\n"
"      --mode MODE        (create) permissions, octal; else 600\n"
"      --recursive        (create) a mutex that its owner may lock again\n"
"      --guarded          (create) each step is checked by the kernel\n"
"      --last-user        (create) removed when its last user closes it\n"
"      --exclusive        (create) fail if it exists\n"
"      --by N             (post) increment by N\n"
"      --all              (post) a condition: wake all waiters\n"
"      --count N          (wait) the count of an event to wait for\n"
"      --read             (lock) lock it for reading (a reader-writer lock)\n"
"      --names            (list) only names, one a line, escaped as messages are\n"
"  -j, --json             (list, show) as JSON\n"
"  -h, --help\n"
"  -V, --version\n"
"\n"
"Exit status: 0; 1 trouble; 2 wrong usage; 124 time-out. That of\n"
"lock is COMMAND's, 128 + N if signal N ended it, or 124, or 125 if there is\n"
"trouble, 126 and 127 if COMMAND cannot be run.\n"
"See stargate-sem(1).\n";

static const struct command {
	const char *name, *options;
	int (*run)(struct call *c);
	bool named;
} commands[] = {
	{ "list", "jO", cmd_list, false },
	{ "create", "TnmRGLX", cmd_create, true },
	{ "rm", "", cmd_rm, true },
	{ "show", "j", cmd_show, true },
	{ "stat", "", cmd_show, true },
	{ "reset", "", cmd_reset, true },
	{ "wait", "tN", cmd_wait, true },
	{ "post", "ba", cmd_post, true },
	{ "lock", "tr", cmd_lock, true },
};

static const struct option options[] = {
	{ "volume", required_argument, NULL, 'v' }, { "timeout", required_argument, NULL, 't' },
	{ "type", required_argument, NULL, 'T' }, { "value", required_argument, NULL, 'n' },
	{ "mode", required_argument, NULL, 'm' }, { "recursive", no_argument, NULL, 'R' },
	{ "guarded", no_argument, NULL, 'G' }, { "last-user", no_argument, NULL, 'L' },
	{ "exclusive", no_argument, NULL, 'X' }, { "by", required_argument, NULL, 'b' },
	{ "all", no_argument, NULL, 'a' }, { "count", required_argument, NULL, 'N' },
	{ "read", no_argument, NULL, 'r' }, { "names", no_argument, NULL, 'O' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }, { 0 }
};

static const char *const types[] = {
	[STARGATE_MUTEX] = "mutex", [STARGATE_SEMAPHORE] = "semaphore", [STARGATE_RWLOCK] = "rwlock",
	[STARGATE_CONDITION] = "condition", [STARGATE_BARRIER] = "barrier", [STARGATE_EVENT] = "event",
	[STARGATE_RING] = "ring",
};

const char *type_name(enum stargate_type type)
{
	return type > STARGATE_ANY && type <= STARGATE_RING ? types[type] : "unknown";
}

int trouble(const struct call *c, int err, int status)
{
	bool of_volume = !c->name || err == ENODEV || err == EXDEV || err == EROFS;

	if (of_volume && !c->volume)
		tool_error("%s", err == ENODEV ? "no StargateFS volume is mounted" : stargate_why(err));
	else
		tool_error("%s: %s", of_volume ? c->volume : c->name, stargate_why(err));
	return err == EAGAIN || err == ETIMEDOUT ? STATUS_TIMEOUT : status;
}

static bool parse_type(const char *text, enum stargate_type *out)
{
	unsigned int i;

	for (i = STARGATE_MUTEX; i <= STARGATE_EVENT; i++)
		if (!strcmp(text, types[i])) {
			*out = (enum stargate_type)i;
			return true;
		}
	return false;
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
	case 'T':
		return parse_type(text, &c->type);
	case 'm':
		if (!parse_number(text, 8, 0777, &n))
			return false;
		c->mode = (unsigned int)n;
		return true;
	case 'n':
		return parse_number(text, 10, 0x7fffffff, &c->value);
	case 'b':
		return parse_number(text, 10, ~0ULL >> 2, &c->by);
	default:
		c->has_count = true;
		return parse_number(text, 10, ~0ULL >> 2, &c->at);
	}
}

static void take_flag(struct call *c, int opt)
{
	switch (opt) {
	case 'R': c->flags |= STARGATE_RECURSIVE; break;
	case 'G': c->flags |= STARGATE_GUARDED; break;
	case 'L': c->flags |= STARGATE_LAST_USER; break;
	case 'X': c->how |= STARGATE_EXCLUSIVE; break;
	case 'a': c->all = true; break;
	case 'r': c->read = true; break;
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

/* Print the lines of the usage for @cmd, for its options, and for those of all commands. */
static int help_of(const struct command *cmd)
{
	const char *line, *end;
	size_t n = strlen(cmd->name), indent;
	bool ours = false;
	int option;

	printf("Usage: stargate-sem [OPTION]... %s%s%s\n", cmd->name, cmd->named ? " NAME" : "",
	       cmd->run == cmd_lock ? " -- COMMAND [ARGUMENT]..." : "");
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

/* @word: as it was given, also -tVALUE and --timeout=VALUE. */
static int refuse_value(const char *word)
{
	size_t n = word[1] == '-' ? strcspn(word, "=") : 2;

	return tool_usage_error("'%s' is not possible with '%.*s'", optarg, (int)n, word);
}

/*
 * 0, an exit status, or -1: all is done, without an error. @given: letters of the options that were
 * given. @cmd: the command before them, or NULL.
 */
static int parse_options(struct call *c, const struct command *cmd, int argc, char **argv,
			 char *given)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "+:v:t:jhV", options, NULL)) != -1) {
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
		if (strchr("tTmnbN", opt) && !take_value(c, opt, optarg))
			return refuse_value(argv[optind - 1] == optarg ? argv[optind - 2] :
					    argv[optind - 1]);
		take_flag(c, opt);
		if (!strchr(given, opt))
			given[strlen(given)] = (char)opt;
	}
	return 0;
}

/* The arguments after the command's name: more options, and NAME. */
static int parse_rest(struct call *c, const struct command *cmd, int argc, char **argv, char *given)
{
	int err;

	while (optind < argc && strcmp(argv[optind - 1], "--")) {
		if (argv[optind][0] != '-' || !argv[optind][1]) {
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
	if (cmd->named && !c->name && optind < argc) {	/* after "--" it may begin with '-' */
		c->name = argv[optind++];
		optind += optind < argc && !strcmp(argv[optind], "--");
	}
	c->command = argv + optind;
	if (cmd->named && !c->name)
		return tool_usage_error("%s: NAME is missing", cmd->name);
	for (; *given; given++)
		if (!strchr(cmd->options, *given))
			return tool_usage_error("%s: an option is not possible with this command", cmd->name);
	if (cmd->run == cmd_lock && !*c->command)
		return tool_usage_error("lock: there is no COMMAND: lock NAME -- COMMAND");
	if (cmd->run != cmd_lock && *c->command)
		return tool_usage_error("%s: too many arguments: '%s'", cmd->name, *c->command);
	return 0;
}

int main(int argc, char **argv)
{
	struct call c = { .type = STARGATE_SEMAPHORE, .mode = 0600, .by = 1,
			  .until = STARGATE_FOREVER };
	const struct command *cmd;
	char given[32] = "";
	int err;

	tool_begin("stargate-sem", argv);
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
