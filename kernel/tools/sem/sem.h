/* SPDX-License-Identifier: Apache-2.0 */
/* stargate-sem: declarations that its files share. */
#ifndef STARGATE_SEM_TOOL_H
#define STARGATE_SEM_TOOL_H

#include "objects.h"

/*
 * Statuses of `lock`, in addition to STATUS_TIMEOUT; otherwise it exits with the status of its
 * command.
 */
#define STATUS_TROUBLE	125

/**
 * struct call - the arguments of the command line @o.rest: the command of `lock`. @at: --count, the
 * value to wait for; @by: --by.
 */
struct call {
	struct object_call o;
	enum stargate_type type;
	uint64_t value, by, at;
	bool read, all, has_count;
};

/* They return an exit status, and report errors. */
int cmd_list(struct call *c);
int cmd_show(struct call *c);
int cmd_create(struct call *c);
int cmd_rm(struct call *c);
int cmd_reset(struct call *c);
int cmd_wait(struct call *c);
int cmd_post(struct call *c);
int cmd_lock(struct call *c);

const char *type_name(enum stargate_type type);
/* Reports an error. Returns 1, or @status. */
int trouble(const struct call *c, int err, int status);

#endif
