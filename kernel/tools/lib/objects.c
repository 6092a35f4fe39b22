// SPDX-License-Identifier: Apache-2.0
/* Common code of programs whose commands work on named objects (objects.h). */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "objects.h"

/* --- help ------------------------------------------------------------------------------------- */

static const struct object_command *find(const struct object_program *p, const char *word)
{
	const struct object_command *cmd = p->commands;

	while (cmd->name && strcmp(cmd->name, word))
		cmd++;
	return cmd->name ? cmd : NULL;
}

/* Returns the option that a line of the usage text describes, or 0. */
static int option_of(const struct object_program *p, const char *line)
{
	const char *name = strstr(line, "--");
	const struct option *o;
	size_t n;

	if (strspn(line, " ") > 6 || !name || name > strchrnul(line, '\n'))
		return 0;
	n = strcspn(name += 2, " ,\n");
	for (o = p->options; o->name; o++)
		if (strlen(o->name) == n && !strncmp(o->name, name, n))
			return o->val;
	return 0;
}

/*
 * Prints the lines of the usage text for @cmd, for its options, and for the options of all
 * commands.
 */
static int help_of(const struct object_program *p, const struct object_command *cmd)
{
	const char *line, *end;
	size_t n = strlen(cmd->name), indent;
	bool ours = false;
	int option;

	printf("Usage: %s [OPTION]... %s%s%s\n", p->name, cmd->name, cmd->named ? " NAME" : "",
	       cmd->more ? cmd->more : "");
	for (line = p->usage; *line; line = end + 1) {
		end = strchrnul(line, '\n');
		option = option_of(p, line);
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

/* --- options ---------------------------------------------------------------------------------- */

/* Reads seconds with up to nine decimal places. */
static bool parse_seconds(const char *text, uint64_t *until)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end || !(s >= 0) || s > 1e9)
		return false;
	*until = s > 0 ? stargate_in((uint64_t)(s * 1e9)) : STARGATE_TRY;
	return true;
}

static bool take_value(const struct object_program *p, struct call *call, int option,
		       const char *text)
{
	struct object_call *c = (struct object_call *)call;
	u64 n;

	switch (option) {
	case 't':
		return parse_seconds(text, &c->until);
	case 'm':
		if (!parse_number(text, 8, 0777, &n))
			return false;
		c->mode = (unsigned int)n;
		return true;
	default:
		return p->value(call, option, text);
	}
}

static void take_flag(const struct object_program *p, struct call *call, int option)
{
	struct object_call *c = (struct object_call *)call;

	switch (option) {
	case 'L': c->flags |= STARGATE_LAST_USER; break;
	case 'X': c->how |= STARGATE_EXCLUSIVE; break;
	case 'O': c->names = true; break;
	case 'j': c->json = true; break;
	default: p->flag(call, option); break;
	}
}

static const struct option *option_named(const struct object_program *p, int option)
{
	const struct option *o = p->options;

	while (o->name && o->val != option)
		o++;
	return o;
}

static int refuse_value(const struct object_program *p, int option)
{
	const struct object_rule *r = p->rules;

	while (r->option && r->option != option)
		r++;
	return tool_value_error(option_named(p, option)->name, optarg, r->size, r->allowed);
}

/*
 * Parses the options. Returns 0, an exit status, or -1 if the program has nothing more to do.
 * @given: letters of the options that the user gave. @cmd: the command before these options, or
 * NULL.
 */
static int parse_options(const struct object_program *p, struct call *c,
			 const struct object_command *cmd, int argc, char **argv, char *given)
{
	int opt;

	while ((opt = getopt_long(argc, argv, p->short_options, p->options, NULL)) != -1) {
		if (opt == 'h')
			return (cmd ? help_of(p, cmd) : tool_help(p->usage)) ?: -1;
		if (opt == 'V')
			return tool_version() ?: -1;
		if (opt == ':' || opt == '?')
			return tool_option_error(opt, argv);
		if (opt == 'v') {
			((struct object_call *)c)->volume = optarg;
			continue;
		}
		if (option_named(p, opt)->has_arg == no_argument)
			take_flag(p, c, opt);
		else if (!take_value(p, c, opt, optarg))
			return refuse_value(p, opt);
		if (!strchr(given, opt))
			given[strlen(given)] = (char)opt;
	}
	return 0;
}

static int check_rest(const struct object_call *c, const struct object_command *cmd,
		      const char *given)
{
	if (cmd->named && !c->name)
		return tool_usage_error("%s: NAME is missing", cmd->name);
	for (; *given; given++)
		if (!strchr(cmd->options, *given))
			return tool_usage_error("%s: an option is not possible with this command",
						cmd->name);
	if (cmd->more && !*c->rest)
		return tool_usage_error("%s: COMMAND is missing: %s NAME -- COMMAND", cmd->name,
					cmd->name);
	if (!cmd->more && *c->rest)
		return tool_usage_error("%s: too many arguments: '%s'", cmd->name, *c->rest);
	return 0;
}

/* Parses the arguments after the command's name: more options, and NAME. */
static int parse_rest(const struct object_program *p, struct call *call,
		      const struct object_command *cmd, int argc, char **argv, char *given)
{
	struct object_call *c = (struct object_call *)call;
	int err;

	while (optind < argc && strcmp(argv[optind - 1], "--")) {
		if (argv[optind][0] != '-' || !argv[optind][1]) {
			if (c->name || !cmd->named)
				return tool_usage_error("%s: too many arguments: '%s'", cmd->name,
							argv[optind]);
			c->name = argv[optind++];
			continue;
		}
		err = parse_options(p, call, cmd, argc, argv, given);
		if (err)
			return err;
	}
	if (cmd->named && !c->name && optind < argc) {	/* after "--" the name may begin with '-' */
		c->name = argv[optind++];
		optind += cmd->more && optind < argc && !strcmp(argv[optind], "--");
	}
	c->rest = argv + optind;
	return check_rest(c, cmd, given);
}

static int say_help(const struct object_program *p, const char *word)
{
	const struct object_command *cmd = word ? find(p, word) : NULL;

	if (word && !cmd)
		return tool_usage_error("there is no command '%s'", word);
	return cmd ? help_of(p, cmd) : tool_help(p->usage);
}

int object_main(const struct object_program *p, struct call *c, int argc, char **argv)
{
	const struct object_command *cmd;
	char given[32] = "";
	int err;

	tool_begin(p->name, argv);
	opterr = 0;
	err = parse_options(p, c, NULL, argc, argv, given);
	if (err)
		return err < 0 ? 0 : err;
	if (optind == argc)
		return tool_usage_error("there is no command");
	if (!strcmp(argv[optind], "help"))
		return say_help(p, argv[optind + 1]);
	cmd = find(p, argv[optind++]);
	if (!cmd)
		return tool_usage_error("there is no command '%s'", argv[optind - 1]);
	err = parse_rest(p, c, cmd, argc, argv, given);
	if (err)
		return err < 0 ? 0 : err;
	((struct object_call *)c)->json |= !strcmp(cmd->name, "stat");
	return tool_end(cmd->run(c));
}

int object_trouble(const struct object_call *c, int err, const char *why, int status)
{
	bool of_volume = !c->name || err == ENODEV || err == EXDEV || err == EROFS;

	if (!why)
		why = stargate_why(err);
	if (of_volume && !c->volume)
		tool_error("%s", err == ENODEV ? "no StargateFS volume is mounted" : why);
	else
		tool_error("%s: %s", of_volume ? c->volume : c->name, why);
	return err == EAGAIN || err == ETIMEDOUT ? STATUS_TIMEOUT : status;
}

/* --- lists ------------------------------------------------------------------------------------ */

struct listing {
	const struct object_list *how;
	struct stargate_stat *all;
	size_t n, room;
};

static int keep(void *ctx, const struct stargate_stat *st)
{
	struct listing *l = ctx;

	if (!l->how->lists(st))
		return 0;
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		void *all = realloc(l->all, room * sizeof(*l->all));

		if (!all)
			return ENOMEM;
		l->all = all;
		l->room = room;
	}
	l->all[l->n++] = *st;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct stargate_stat *)a)->name,
		      ((const struct stargate_stat *)b)->name);
}

static void put_json(const struct listing *l)
{
	struct json j;
	size_t i;

	json_begin(&j, stdout, false);
	json_array(&j, l->how->array);
	for (i = 0; i < l->n; i++) {
		json_row(&j, NULL);
		l->how->json(&j, &l->all[i]);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_end(&j);
}

static void put_name(const struct stargate_stat *st)
{
	put_text(stdout, st->name, strlen(st->name));
	putchar('\n');
}

int object_list(const struct object_call *c, const struct object_list *how)
{
	struct listing l = { .how = how };
	int err = stargate_list(c->volume, keep, &l);
	size_t i;

	if (err) {
		free(l.all);
		return object_trouble(c, err, NULL, 1);
	}
	if (l.n)
		qsort(l.all, l.n, sizeof(*l.all), by_name);
	if (c->json)
		put_json(&l);
	for (i = 0; i < l.n && !c->json; i++)
		(c->names ? put_name : how->line)(&l.all[i]);
	free(l.all);
	return 0;
}
