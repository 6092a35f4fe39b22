/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common parts of stargate-sem and stargate-ring, whose commands work on named objects: the command
 * line, help, lists, and error messages. Both programs are linked with libstargate.
 */
#ifndef SG_OBJECTS_H
#define SG_OBJECTS_H

#include <getopt.h>
#include "stargate.h"
#include "tool.h"

#define STATUS_TIMEOUT	124

/**
 * struct object_call - the arguments that both programs have
 * @name: name of the object. @rest: arguments after "--", terminated by NULL. @until: time from
 * --timeout at which all waits end. @flags, @mode: properties of a new object; @how: flags for
 * opening it.
 */
struct object_call {
	const char *volume, *name;
	char **rest;
	unsigned int flags, mode, how;
	uint64_t until;
	bool json, names;
};

struct call;	/* the program's own structure, which begins with a struct object_call */

/**
 * struct object_command - a command
 * @options: the letters of its options, in addition to those of all commands. @named: it needs
 * NAME. @more: its other arguments, for the usage message, or NULL without others.
 */
struct object_command {
	const char *name, *options;
	int (*run)(struct call *c);
	bool named;
	const char *more;
};

/* The allowed values of an option. @size: parse_size() reads the value. */
struct object_rule {
	int option;
	const char *allowed;
	bool size;
};

/**
 * struct object_program - a program
 * @short_options: for getopt_long(). @commands, @rules: terminated by an empty entry. @value:
 * stores the value of an option other than --timeout and --mode; returns false if the value is
 * invalid. @flag: stores an option without a value that only this program has.
 */
struct object_program {
	const char *name, *usage, *short_options;
	const struct option *options;
	const struct object_command *commands;
	const struct object_rule *rules;
	bool (*value)(struct call *c, int option, const char *text);
	void (*flag)(struct call *c, int option);
};
/*
 * Letters of the options that both programs have: v t m L(ast user) X(exclusive) (names) O j h V.
 *
 */

int object_main(const struct object_program *p, struct call *c, int argc, char **argv);

/*
 * Reports an error. Returns @status, or STATUS_TIMEOUT after a time limit. @why: replaces the usual
 * message.
 */
int object_trouble(const struct object_call *c, int err, const char *why, int status);

/**
 * struct object_list - how a program lists its objects
 * @array: name of the JSON array. @lists: reports whether the program lists an object.
 */
struct object_list {
	const char *array;
	bool (*lists)(const struct stargate_stat *st);
	void (*json)(struct json *j, const struct stargate_stat *st);
	void (*line)(const struct stargate_stat *st);
};
/* Lists the objects, sorted by name, in the form of --names or --json. */
int object_list(const struct object_call *c, const struct object_list *how);

#endif
