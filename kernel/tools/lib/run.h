/* SPDX-License-Identifier: Apache-2.0 */
/* Runs other programs without a shell. */
#ifndef SG_RUN_H
#define SG_RUN_H

#include <limits.h>
#include "tool.h"

/** struct said - the output of a program; each text ends in a zero byte, or is NULL. */
struct text {
	char *bytes;
	size_t len, room;
};
struct said {
	struct text out, err;
};
void said_free(struct said *said);

/*
 * Return the path of a program of the system, or of a program that was installed together with this
 * program.
 */
bool program_find(const char *name, char path[PATH_MAX]);
bool program_beside(const char *name, char path[PATH_MAX]);

/*
 * Runs a program. Returns its exit status, or 127 if it could not be started. Its output goes to
 * the output of this process; with @quiet, only to stderr.
 */
int program_show(const char *path, const char *const *words, bool quiet);
/*
 * Like program_show(), with the output in @said, which the caller frees, and with @env as the
 * complete environment.
 */
int program_hear(const char *path, const char *const *words, const char *const *env,
		 struct said *said);

#endif
