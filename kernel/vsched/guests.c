// SPDX-License-Identifier: Apache-2.0
/*
 * The vCPUs that the scheduler manages. A BPF program reports new vCPU threads; the daemon removes
 * threads that have ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fnmatch.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "vsched.h"

#ifndef SCHED_EXT
#define SCHED_EXT 7
#endif

struct vs_guest vs_guests[VS_VMS];

static bool set_policy(pid_t tid, int policy)
{
	struct sched_param none = { 0 };

	return !syscall(SYS_sched_setscheduler, tid, policy, &none);
}

static bool ours_to_take(pid_t tid)
{
	int policy = sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK;

	return policy == SCHED_OTHER || policy == SCHED_EXT;
}

/*
 * Returns the index of a VM in the table, and adds the VM if necessary. Returns -1 if the table is
 * full.
 */
static int place_of(const struct vs_options *o, struct vs_kernel *k, pid_t tgid)
{
	struct vs_guest *g;
	u32 i, s;

	for (i = 0; i < VS_VMS; i++)
		if (k->vms[i].used && vs_guests[i].tgid == tgid)
			return i;
	for (i = 0; i < VS_VMS && k->vms[i].used; i++)
		;
	if (i == VS_VMS)
		return -1;
	g = &vs_guests[i];
	memset(g, 0, sizeof(*g));
	g->tgid = tgid;
	vs_name(tgid, g->name, sizeof(g->name));
	for (s = 0; s < o->plains; s++)
		g->plain = g->plain || !fnmatch(o->plain[s], g->name, 0);
	memset(&k->vms[i], 0, sizeof(k->vms[i]));
	k->vms[i].weight = vs_weight(tgid);
	k->vms[i].vtime = *k->clock;
	k->vms[i].used = 1;
	return i;
}

/*
 * Leaves all vCPUs of a VM to the kernel's scheduler, even if only one of them must stay there: the
 * vCPUs of a VM wait for each other.
 */
static void leave(struct vs_kernel *k, u32 vm, const char *why)
{
	u32 i, tid;

	vs_guests[vm].left = why;
	for (i = vm * VS_VM_VCPUS; i < (vm + 1) * VS_VM_VCPUS; i++) {
		tid = k->vcpus[i].tid;
		if (!tid)
			continue;
		bpf_map_delete_elem(k->by_tid, &tid);
		set_policy(tid, SCHED_OTHER);
	}
}

static void take(const struct vs_options *o, struct vs_kernel *k, u32 tid,
		 const struct vs_found *f)
{
	int vm = place_of(o, k, f->tgid);
	u32 at, none = VS_NONE, end;
	struct vs_vcpu *v;

	if (vm < 0) {
		bpf_map_update_elem(k->by_vcpu, &f->vcpu, &none, BPF_ANY);
		return;
	}
	end = (vm + 1) * VS_VM_VCPUS;
	for (at = vm * VS_VM_VCPUS; at < end && k->vcpus[at].tid && k->vcpus[at].tid != tid; at++)
		;
	if (at < end && !k->vcpus[at].tid) {
		v = &k->vcpus[at];
		memset(v, 0, sizeof(*v));
		v->vm = vm;
		v->id = f->id;
		v->tgid = f->tgid;
		v->tid = tid;
		k->vms[vm].vcpus++;
	}
	if (!vs_guests[vm].left && !o->watch) {
		if (at == end)
			leave(k, vm, "too many vCPUs");
		else if (!ours_to_take(tid))
			leave(k, vm, "realtime");
		else if (vs_pinned(tid))
			leave(k, vm, "dedicated processors");
		else if (vs_limited(f->tgid, tid))
			leave(k, vm, "cpu.max");
	}
	if (vs_guests[vm].left || at == end) {
		bpf_map_update_elem(k->by_vcpu, &f->vcpu, &none, BPF_ANY);
		return;
	}
	bpf_map_update_elem(k->by_tid, &tid, &at, BPF_ANY);
	bpf_map_update_elem(k->by_vcpu, &f->vcpu, &at, BPF_ANY);
	if (!o->watch && !set_policy(tid, SCHED_EXT))
		leave(k, vm, strerror(errno));
}

static void drop_ended(struct vs_kernel *k)
{
	struct vs_vcpu *v;
	u32 i, tid;

	for (i = 0; i < VS_VCPUS; i++) {
		v = &k->vcpus[i];
		if (!v->tid || !syscall(SYS_tgkill, v->tgid, v->tid, 0) || errno != ESRCH)
			continue;
		tid = v->tid;
		bpf_map_delete_elem(k->by_tid, &tid);
		v->tid = 0;
		if (!--k->vms[v->vm].vcpus)
			k->vms[v->vm].used = 0;
	}
}

bool vs_guests_look(const struct vs_options *o, struct vs_kernel *k)
{
	struct vs_found f;
	bool any = false;
	u32 tid, rounds, at;

	for (rounds = VS_VCPUS; rounds && !bpf_map_get_next_key(k->found, NULL, &tid); rounds--) {
		if (!bpf_map_lookup_elem(k->found, &tid, &f))
			take(o, k, tid, &f);
		any = true;
		bpf_map_delete_elem(k->found, &tid);
	}
	/*
	 * A thread started by a vCPU thread inherits its policy; return it to the kernel's
	 * scheduler.
	 */
	for (rounds = 1024; rounds && !bpf_map_get_next_key(k->strays, NULL, &tid); rounds--) {

		if (bpf_map_lookup_elem(k->by_tid, &tid, &at))
			set_policy(tid, SCHED_OTHER);
		bpf_map_delete_elem(k->strays, &tid);
	}
	drop_ended(k);
	return any;
}

void vs_guests_sample(const struct vs_options *o, struct vs_kernel *k, double seconds)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	u64 weights = 0, ran, own;
	bool busy[VS_VMS];
	u32 i;

	for (i = 0; i < VS_VMS; i++) {
		busy[i] = false;
		if (!k->vms[i].used)
			continue;
		ran = k->vms[i].ran;
		vs_guests[i].share = (ran - vs_guests[i].ran) / (seconds * 1e9 * cpus);
		vs_guests[i].ran = ran;
		k->vms[i].weight = vs_weight(vs_guests[i].tgid);
		/* An idle VM does not reduce the budgets of other VMs. */
		busy[i] = vs_guests[i].share * cpus > 0.01 || k->vms[i].active;
		weights += busy[i] ? k->vms[i].weight : 0;
	}
	for (i = 0; i < VS_VMS; i++) {
		own = k->vms[i].weight;
		if (k->vms[i].used && !vs_guests[i].plain)
			k->vms[i].budget = vs_budget_of(&o->cfg, own, weights + (busy[i] ? 0 : own),
							cpus, o->percent);
	}
}

const struct vs_vcpu *vs_guests_starved(struct vs_kernel *k, u64 now, u64 ns)
{
	struct vs_vcpu *v;
	u64 waits;

	for (v = k->vcpus; v < k->vcpus + VS_VCPUS; v++) {
		waits = v->waits;
		if (v->tid && v->state == VS_WAITS && waits < now && now - waits > ns)
			return v;
	}
	return NULL;
}

void vs_guests_release(struct vs_kernel *k)
{
	u32 i;

	for (i = 0; i < VS_VCPUS; i++)
		if (k->vcpus[i].tid && !vs_guests[k->vcpus[i].vm].left)
			set_policy(k->vcpus[i].tid, SCHED_OTHER);
}
