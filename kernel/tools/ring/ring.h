/* SPDX-License-Identifier: Apache-2.0 */
/* stargate-ring: declarations that its files share. */
#ifndef STARGATE_RING_TOOL_H
#define STARGATE_RING_TOOL_H

#include "objects.h"

/**
 * struct call - the arguments of the command line
 * @size: --size, size of a ring. @block: --block. @count: --count, number of records; 0: no limit.
 * @tag: --tag. @readers, @writers: for bench; 0: measure several numbers.
 */
struct call {
	struct object_call o;
	uint64_t size, block, count, tag, readers, writers;
	bool raw, tags;
};

/* They return an exit status, and report errors. */
int cmd_list(struct call *c);
int cmd_create(struct call *c);
int cmd_rm(struct call *c);
int cmd_reset(struct call *c);
int cmd_show(struct call *c);
int cmd_send(struct call *c);
int cmd_recv(struct call *c);
int cmd_pipe(struct call *c);
int cmd_listen(struct call *c);
int cmd_dial(struct call *c);
int cmd_bench(struct call *c);

/* Reports an error. Returns 1, or 124 after a time limit. */
int trouble(const struct call *c, int err);

#endif
