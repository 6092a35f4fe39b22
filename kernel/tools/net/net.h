/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stargate-net: declarations that its files share.
 *
 *   main.c	the command line
 *   permit.c	the volume's permission
 *   link.c	the device of this system, by rtnetlink
 *   show.c	the device, its peers and its counters
 */
#ifndef SG_TOOL_NET_H
#define SG_TOOL_NET_H

#include "objects.h"
#include "uapi/netlink.h"

/**
 * struct call - the arguments
 * @ring: bytes of a ring. @queues: 0: the module's default. @all: --publish all.
 */
struct call {
	struct object_call o;
	u64 ring, queues;
	bool all;
};

int cmd_allow(struct call *c);
int cmd_deny(struct call *c);
int cmd_up(struct call *c);
int cmd_down(struct call *c);
int cmd_show(struct call *c);

int trouble(const struct call *c, int err, const char *why);

#endif
