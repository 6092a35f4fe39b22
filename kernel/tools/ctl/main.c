// SPDX-License-Identifier: Apache-2.0
/* stargatectl: look into a StargateFS that is not mounted here, and move files in and out. */
#define _GNU_SOURCE
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include "ctl.h"

static const char usage[] =
"Usage: stargatectl [OPTION]... COMMAND VOLUME [ARGUMENT]...\n"
"Look into a StargateFS on a device or in a file; move files in and out of one\n"
"that nobody uses.\n"
"\n"
"  info V                 what kind of volume this is\n"
"  df V                   space and inodes\n"
"  slots V                the mount table: who uses it, or died with it\n"
"  ls [-l] [-r] V [PATH]  names in a directory\n"
"  stat V PATH            attributes, and where the bytes are\n"
"  cat V PATH...          contents of files\n"
"  get [-r] V PATH [TO]   copy a file, or a whole tree, out of the volume\n"
"  put [-r] V FROM [PATH] copy a file (-: standard input), or a whole tree,\n"
"                         into it\n"
"  mkdir [-p] V PATH...   make directories\n"
"  rm [-r] V PATH...      remove files or trees\n"
"  label V [LABEL]        show or set the label\n"
"  dump V super | hot | slots | journal | ledger | chunks [FIRST [COUNT]] |\n"
"         inode PATH | dir PATH | bucket OFFSET | table PATH | xattr PATH\n"
"\n"
"  -j, --json             (info, df, slots, ls, stat, label, dump) as JSON\n"
"  -l, --long             (ls) long listing\n"
"  -r, --recursive        (ls, get, put, rm) with all below it\n"
"  -p, --parents          (mkdir) with missing parents\n"
"      --force            (put, mkdir, rm, label) take other systems for dead\n"
"  -h, --help\n"
"  -V, --version\n"
"\n"
"PATH is /a/b, or <N> for inode number N. Commands that only look work on a\n"
"private copy, also of a volume in use; what they show may be changing.\n"
"See stargatectl(8).\n";

/*
 * @options: that it takes. @arguments: what follows its name. @before: exit status of what can be
 * said before the volume is touched. @min, @max: arguments behind the volume. @change: when it has
 * any, it joins.
 */
static const struct command {
	const char *name, *options, *arguments;
	int (*run)(struct call *c);
	int (*before)(struct call *c);
	int min, max;
	bool change;
} commands[] = {
	{ "info", "j", "VOLUME", cmd_info, NULL, 0, 0, false },
	{ "df", "j", "VOLUME", cmd_df, NULL, 0, 0, false },
	{ "slots", "j", "VOLUME", cmd_slots, NULL, 0, 0, false },
	{ "systems", "j", "VOLUME", cmd_slots, NULL, 0, 0, false },
	{ "ls", "jlr", "VOLUME [PATH]", cmd_ls, NULL, 0, 1, false },
	{ "stat", "j", "VOLUME PATH", cmd_stat, NULL, 1, 1, false },
	{ "cat", "", "VOLUME PATH...", cmd_cat, NULL, 1, INT_MAX, false },
	{ "get", "r", "VOLUME PATH [TO]", cmd_get, NULL, 1, 2, false },
	{ "put", "rF", "VOLUME FROM [PATH]", cmd_put, before_put, 1, 2, true },
	{ "mkdir", "pF", "VOLUME PATH...", cmd_mkdir, NULL, 1, INT_MAX, true },
	{ "rm", "rF", "VOLUME PATH...", cmd_rm, NULL, 1, INT_MAX, true },
	{ "label", "jF", "VOLUME [LABEL]", cmd_label, before_label, 0, 1, true },
	{ "dump", "j", "VOLUME STRUCTURE [ARGUMENT]...", cmd_dump, before_dump, 1, INT_MAX, false },
};

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' }, { "force", no_argument, NULL, 'F' },
	{ "long", no_argument, NULL, 'l' }, { "recursive", no_argument, NULL, 'r' },
	{ "parents", no_argument, NULL, 'p' }, { "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' }, { 0 }
};

static const char *long_name(int opt)
{
	const struct option *o = options;

	while (o->val != opt)
		o++;
	return o->name;
}

static const struct command *find_command(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void take_option(struct call *c, int opt)
{
	switch (opt) {
	case 'j':
		c->json = true;
		break;
	case 'l':
		c->longer = true;
		break;
	case 'r':
		c->recursive = true;
		break;
	case 'p':
		c->parents = true;
		break;
	case 'F':
		c->force = true;
		break;
	}
}

static int run(struct call *c, const struct command *cmd, const char *volume)
{
	bool change = cmd->change && c->argc;
	int err;

	err = cmd->before ? cmd->before(c) : 0;
	if (err)
		return err;
	if (change)	/* nobody who stops listening ends us in the middle */
		signal(SIGPIPE, SIG_IGN);
	if (member_open(&c->m, volume, change, c->force))
		return 1;
	err = cmd->run(c);
	err = tool_end(err ? 1 : 0);
	return member_close(&c->m) ? 1 : err;
}

/* The command, its volume and arguments; or NULL, said. */
static const struct command *read_words(struct call *c, int argc, char **argv, const char *given)
{
	const struct command *cmd;

	if (optind == argc) {
		tool_usage_error("which command?");
		return NULL;
	}
	cmd = find_command(argv[optind]);
	if (!cmd) {
		tool_usage_error("there is no command '%s'", argv[optind]);
		return NULL;
	}
	c->argc = argc - optind - 2;
	c->argv = argv + optind + 2;
	given += strspn(given, cmd->options);
	if (*given)
		tool_usage_error("%s: takes no --%s", cmd->name, long_name(*given));
	else if (c->argc < cmd->min || c->argc > cmd->max)
		tool_usage_error("%s: takes %s", cmd->name, cmd->arguments);
	else
		return cmd;
	return NULL;
}

int main(int argc, char **argv)
{
	static struct call c;
	const struct command *cmd;
	char given[8] = "";
	int opt;

	tool_begin("stargatectl", argv);
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":jlrpfhV", options, NULL)) != -1) {
		if (opt == 'h')
			return tool_help(usage);
		if (opt == 'V')
			return tool_version();
		if (opt == 'f')	/* rm -f is in the fingers, and means something else */
			return tool_usage_error("-f: to take other systems for dead say --force");
		if (opt == '?' || opt == ':')
			return tool_option_error(opt, argv);
		if (!strchr(given, opt))
			given[strlen(given)] = (char)opt;
		take_option(&c, opt);
	}
	cmd = read_words(&c, argc, argv, given);
	return cmd ? run(&c, cmd, argv[optind + 1]) : 2;
}
