// SPDX-License-Identifier: Apache-2.0
/* stargate-sem: shared semaphores for shells. */
#include <string.h>
#include "objects.h"
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
"  post NAME              semaphore: increment it; event: increase it;\n"
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

static const struct object_command commands[] = {
	{ "list", "jO", cmd_list, false, NULL },
	{ "create", "TnmRGLX", cmd_create, true, NULL },
	{ "rm", "", cmd_rm, true, NULL },
	{ "show", "j", cmd_show, true, NULL },
	{ "stat", "", cmd_show, true, NULL },
	{ "reset", "", cmd_reset, true, NULL },
	{ "wait", "tN", cmd_wait, true, NULL },
	{ "post", "ba", cmd_post, true, NULL },
	{ "lock", "tr", cmd_lock, true, " -- COMMAND [ARGUMENT]..." },
	{ 0 }
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

static const struct object_rule rules[] = {
	{ 't', "a number of seconds", false }, { 'm', "octal, up to 777", false },
	{ 'T', "semaphore, mutex, rwlock, condition, barrier or event", false },
	{ 'n', "a number up to 2147483647", false }, { 'b', "a number up to 2^62 - 1", false },
	{ 'N', "a number up to 2^62 - 1", false }, { 0 }
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
	return object_trouble(&c->o, err, NULL, status);
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

static bool take_value(struct call *c, int opt, const char *text)
{
	switch (opt) {
	case 'T':
		return parse_type(text, &c->type);
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
	case 'R': c->o.flags |= STARGATE_RECURSIVE; break;
	case 'G': c->o.flags |= STARGATE_GUARDED; break;
	case 'a': c->all = true; break;
	case 'r': c->read = true; break;
	}
}

int main(int argc, char **argv)
{
	static const struct object_program program = {
		.name = "stargate-sem", .usage = usage, .short_options = "+:v:t:jhV",
		.options = options, .commands = commands, .rules = rules,
		.value = take_value, .flag = take_flag,
	};
	struct call c = { .o = { .mode = 0600, .until = STARGATE_FOREVER },
			  .type = STARGATE_SEMAPHORE, .by = 1 };

	return object_main(&program, &c, argc, argv);
}
