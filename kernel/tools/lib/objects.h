/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose commands are about objects by name: stargate-sem and stargate-ring. The command
 * line, help, lists, and what went wrong. They are linked with libstargate.
 */
#ifndef SG_OBJECTS_H
#define SG_OBJECTS_H

#include <getopt.h>
#include "stargate.h"
#include "tool.h"

#define STATUS_TIMEOUT	124

/**
 * struct object_call - the arguments that both programs have
 * @name: of the object. @rest: arguments behind "--", ended by NULL. @until: --timeout, the end of
 * all waits. @flags, @mode: of a new object; @how: to open it.
 */
struct object_call {
	const char *volume, *name;
	char **rest;
	unsigned int flags, mode, how;
	uint64_t until;
	bool json, names;
};

struct call;	/* of the program: it begins with a struct object_call */

/**
 * struct object_command - a command
 * @options: the letters of those that it takes, besides those of all commands. @named: it needs
 * NAME. @more: further arguments, for the usage; else NULL, and there are none.
 */
struct object_command {
	const char *name, *options;
	int (*run)(struct call *c);
	bool named;
	const char *more;
};

/* The values that an option may have. @size: parse_size() reads it. */
struct object_rule {
	int option;
	const char *allowed;
	bool size;
};

/**
 * struct object_program - a program
 * @short_options: for getopt_long(). @commands, @rules: ended by an empty one. @value: takes the
 * value of an option, unless it is --timeout or --mode; false: that is not possible. @flag: notes
 * an option without a value, unless both programs have it.
 */
struct object_program {
	const char *name, *usage, *short_options;
	const struct option *options;
	const struct object_command *commands;
	const struct object_rule *rules;
	bool (*value)(struct call *c, int option, const char *text);
	void (*flag)(struct call *c, int option);
};
/* Letters of the options that both have: v t m L(ast user) X(exclusive) (names) O j h V. */

int object_main(const struct object_program *p, struct call *c, int argc, char **argv);

/* Reports it. Returns @status, or STATUS_TIMEOUT after a time limit. @why: instead of the usual. */
int object_trouble(const struct object_call *c, int err, const char *why, int status);

/**
 * struct object_list - how a program lists its objects
 * @array: name of the JSON array. @lists: is it one of its objects?
 */
struct object_list {
	const char *array;
	bool (*lists)(const struct stargate_stat *st);
	void (*json)(struct json *j, const struct stargate_stat *st);
	void (*line)(const struct stargate_stat *st);
};
/* By name, as --names and --json say. */
int object_list(const struct object_call *c, const struct object_list *how);

#endif
