/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the daemon stargate-vsched share. */
#ifndef SG_VSCHED_H
#define SG_VSCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;

#include "policy.h"
#include "shared.h"

#define VS_SOCKET	"/run/stargate-vsched.sock"
#define VS_LOCK		"/run/stargate-vsched.lock"

/* Exit statuses. */
enum { VS_OK, VS_TROUBLE, VS_USAGE, VS_NO_SCHED_EXT, VS_ENDED };

/**
 * struct vs_options - the command line of `run` and `watch`.
 * @plain: patterns of names of VMs that get no boosts.
 * @percent: the percentage of a VM's share of the processors that its boosts may use.
 */
struct vs_options {
	bool watch;
	struct vs_config cfg;
	u32 percent, plains;
	const char *plain[32];
};

/* A virtual machine: a process with vCPU threads. */
struct vs_guest {
	pid_t tgid;
	char name[64];
	bool plain;		/* gets no boosts */
	const char *left;	/* why the kernel's scheduler runs it, or NULL */
	u64 ran;		/* run time up to the last sample */
	double share;		/* share of all processors in the last second */
};

/* The programs and tables in the kernel (kernel.c). */
struct vs_kernel {
	struct vs_config *cfg;
	struct vs_vm *vms;
	struct vs_vcpu *vcpus;
	volatile u64 *clock;
	volatile struct vs_exit *ended;
	int by_tid, by_vcpu, found, strays;
};
/* Loads and starts the BPF programs. Returns an exit status, and prints the reason of a failure. */
int vs_kernel_start(const struct vs_options *o, struct vs_kernel *k);
/* Attaches (@on) or detaches the program that reports vCPUs unknown to the daemon. */
void vs_kernel_look(bool on);
void vs_kernel_stop(void);

/* The VMs, by their index in the table of VMs (guests.c). */
extern struct vs_guest vs_guests[VS_VMS];
/* Adds new vCPUs to the scheduler, and removes ended vCPUs. Returns whether it has added any. */
bool vs_guests_look(const struct vs_options *o, struct vs_kernel *k);
/* Updates weights, budgets and shares; @seconds have passed since the last call. */
void vs_guests_sample(const struct vs_options *o, struct vs_kernel *k, double seconds);
/* Returns a vCPU that has waited for longer than @ns, or NULL. */
const struct vs_vcpu *vs_guests_starved(struct vs_kernel *k, u64 now, u64 ns);
void vs_guests_release(struct vs_kernel *k);

/* Control groups and processes (system.c). */
u32 vs_weight(pid_t tgid);
bool vs_limited(pid_t tgid, pid_t tid);
bool vs_pinned(pid_t tid);
void vs_name(pid_t tgid, char *name, size_t size);

/* Status (status.c). */
int vs_status_listen(void);
void vs_status_answer(int fd, const struct vs_options *o, const struct vs_kernel *k);
int vs_status_ask(bool json);

#endif
