// SPDX-License-Identifier: Apache-2.0
/* stargatectl: look into a StargateFS that is not mounted here, and move files in and out. */
#define _GNU_SOURCE
#include <getopt.h>
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
"  -j, --json             as JSON\n"
"  -l  long listing       -r  with all below it     -p  with missing parents\n"
"  -f, --force            (put, mkdir, rm, label) take other systems for dead\n"
"      --help, --version\n"
"\n"
"PATH is /a/b, or <N> for inode number N. Commands that only look work on a\n"
"private copy, also of a volume in use; what they show may be changing.\n"
"See stargatectl(8).\n";

static const struct command {
	const char *name;
	int (*run)(struct call *c);
	int min, max;		/* arguments behind the volume */
	bool change;
} commands[] = {
	{ "info", cmd_info, 0, 0, false },
	{ "df", cmd_df, 0, 0, false },
	{ "slots", cmd_slots, 0, 0, false },
	{ "systems", cmd_slots, 0, 0, false },
	{ "ls", cmd_ls, 0, 1, false },
	{ "stat", cmd_stat, 1, 1, false },
	{ "cat", cmd_cat, 1, 1 << 20, false },
	{ "get", cmd_get, 1, 2, false },
	{ "put", cmd_put, 1, 2, true },
	{ "mkdir", cmd_mkdir, 1, 1 << 20, true },
	{ "rm", cmd_rm, 1, 1 << 20, true },
	{ "label", cmd_label, 0, 1, true },
	{ "dump", cmd_dump, 1, 3, false },
};

static const struct command *find_command(const char *name)
{
	unsigned int i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static bool take_option(struct call *c, int opt)
{
	switch (opt) {
	case 'j':
		return c->json = true;
	case 'l':
		return c->longer = true;
	case 'r':
		return c->recursive = true;
	case 'p':
		return c->parents = true;
	case 'f':
		return c->force = true;
	}
	return false;
}

static int run(struct call *c, const struct command *cmd, const char *volume)
{
	bool change = cmd->change && !(cmd->run == cmd_label && !c->argc);
	int err;

	if (member_open(&c->m, volume, change, c->force))
		return 1;
	err = cmd->run(c);
	if (member_close(&c->m))
		err = 1;
	if (fflush(stdout) || ferror(stdout)) {
		tool_error("cannot write the output: %s", strerror(errno));
		err = 1;
	}
	return err ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' }, { "force", no_argument, NULL, 'f' },
		{ "recursive", no_argument, NULL, 'r' }, { "parents", no_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }, { 0 }
	};
	static struct call c;
	const struct command *cmd;
	int opt;

	tool_begin("stargatectl", argv);
	while ((opt = getopt_long(argc, argv, "jlrpfhV", options, NULL)) != -1) {
		if (opt == 'h')
			return fputs(usage, stdout) < 0;
		if (opt == 'V')
			return tool_version();
		if (!take_option(&c, opt))
			return tool_usage_hint();
	}
	if (optind == argc)
		return tool_usage_error("which command?");
	cmd = find_command(argv[optind]);
	if (!cmd)
		return tool_usage_error("there is no command '%s'", argv[optind]);
	c.argc = argc - optind - 2;
	c.argv = argv + optind + 2;
	if (c.argc < 0)
		return tool_usage_error("%s: which volume?", cmd->name);
	if (c.argc < cmd->min || c.argc > cmd->max)
		return tool_usage_error("%s: too %s arguments", cmd->name,
					c.argc < cmd->min ? "few" : "many");
	return run(&c, cmd, argv[optind + 1]);
}
