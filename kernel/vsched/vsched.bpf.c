// SPDX-License-Identifier: GPL-2.0
/*
 * The part of stargate-vsched that runs in the kernel. It has a scheduler of sched_ext in partial
 * mode, which schedules only the vCPU threads that the daemon has assigned to it. Another program
 * runs when KVM delivers an interrupt. All decisions are in policy.h.
 *
 * There is one queue for each VM, from which its vCPUs run one after the other, and one queue for
 * boosted vCPUs. Another queue has threads that vCPU threads have started, until the daemon returns
 * them to the kernel's scheduler.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "policy.h"
#include "shared.h"

char _license[] SEC("license") = "GPL";

/* Types of kvm.ko. BPF ignores the suffix ___sg of their names. */
struct kvm_vcpu___sg {
	int vcpu_id;
} __attribute__((preserve_access_index));
struct kvm_lapic___sg {
	struct kvm_vcpu___sg *vcpu;
} __attribute__((preserve_access_index));

#define QUEUE_VM(vm)	((u64)(vm) + 1)
#define QUEUE_BOOST	(VS_VMS + 1ULL)
#define QUEUE_STRAY	(VS_VMS + 2ULL)

/* APIC delivery modes that carry a vector. */
#define FIXED		0
#define LOWEST		1

/* Do not schedule any thread; only measure latencies under the kernel's own scheduler. */
const volatile bool watch_only = false;

struct vs_config cfg;
struct vs_vm vms[VS_VMS];
struct vs_vcpu vcpus[VS_VCPUS];
u32 on_cpu[VS_CPUS];	/* index of the vCPU that runs on each processor, plus 1 */
u64 clock;
struct vs_exit ended;

struct {	/* maps a thread to its index in vcpus */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VS_VCPUS);
	__type(key, u32);
	__type(value, u32);
} by_tid SEC(".maps");

struct {	/* maps a struct kvm_vcpu to an index in vcpus; VS_NONE: left to the kernel */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4 * VS_VCPUS);
	__type(key, u64);
	__type(value, u32);
} by_vcpu SEC(".maps");

struct {	/* maps a thread to a vCPU that the daemon has not read yet */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4 * VS_VCPUS);
	__type(key, u32);
	__type(value, struct vs_found);
} found SEC(".maps");

struct {	/* threads with our policy that are not vCPUs */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u32);
} strays SEC(".maps");

/*
 * The verifier must see the bound directly at the access. Without the barrier, the compiler would
 * separate the two.
 */
static __always_inline struct vs_vcpu *vcpu_at(u32 at)
{
	barrier_var(at);
	return &vcpus[at & (VS_VCPUS - 1)];
}

static __always_inline struct vs_vm *vm_at(u32 at)
{
	barrier_var(at);
	return &vms[at & (VS_VMS - 1)];
}

static __always_inline struct vs_vm *vm_of(struct vs_vcpu *v)
{
	return vm_at(v->vm);
}

/*
 * Returns the index of a thread in vcpus, or VS_NONE if this scheduler does not manage it as a
 * vCPU.
 */
static __always_inline u32 index_of(u32 tid)
{
	u32 *at = bpf_map_lookup_elem(&by_tid, &tid);

	return at ? *at : VS_NONE;
}

static __always_inline u32 running_on(s32 cpu)
{
	return on_cpu[cpu & (VS_CPUS - 1)] - 1;
}

/*
 * Queues @p at the head of a processor's queue, so that it runs immediately. If a boost is in
 * progress on the processor, @p waits for its end: otherwise two boosts could interrupt each other
 * forever.
 */
static __always_inline void run_now(struct task_struct *p, s32 cpu, u64 length, u64 flags)
{
	u32 runs = running_on(cpu);

	if (runs != VS_NONE && vcpu_at(runs)->boost == VS_BOOSTED)
		scx_bpf_dsq_insert(p, QUEUE_BOOST, length, flags);
	else
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL_ON | cpu, length, flags | SCX_ENQ_PREEMPT);
}

SEC("struct_ops.s/vs_init")
s32 BPF_PROG(vs_init)
{
	s32 err;
	u32 i;

	bpf_for(i, 0, VS_VMS) {
		err = scx_bpf_create_dsq(QUEUE_VM(i), -1);
		if (err)
			return err;
	}
	err = scx_bpf_create_dsq(QUEUE_BOOST, -1);
	return err ? err : scx_bpf_create_dsq(QUEUE_STRAY, -1);
}

/*
 * Called when this scheduler gets a thread: either the daemon assigned it, or a vCPU thread started
 * it.
 */
SEC("struct_ops/vs_enable")
void BPF_PROG(vs_enable, struct task_struct *p)
{
	u32 tid = p->pid, tgid = p->tgid;

	if (index_of(tid) == VS_NONE)
		bpf_map_update_elem(&strays, &tid, &tgid, BPF_ANY);
}

SEC("struct_ops/vs_select_cpu")
s32 BPF_PROG(vs_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);
	u32 at;

	if (!idle)
		return cpu;
	/* The processor is idle, so no boost is needed. */
	at = index_of(p->pid);
	if (at != VS_NONE)
		vcpu_at(at)->boost = VS_PLAIN;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, cfg.slice, 0);
	return cpu;
}

SEC("struct_ops/vs_runnable")
void BPF_PROG(vs_runnable, struct task_struct *p, u64 flags)
{
	u32 at = index_of(p->pid);
	struct vs_vcpu *v;

	if (at == VS_NONE)
		return;
	v = vcpu_at(at);
	v->waits = bpf_ktime_get_ns();
	v->state = VS_WAITS;
	vs_wake(&cfg, vm_of(v), clock);
}

SEC("struct_ops/vs_quiescent")
void BPF_PROG(vs_quiescent, struct task_struct *p, u64 flags)
{
	u32 at = index_of(p->pid);
	struct vs_vcpu *v;

	if (at == VS_NONE)
		return;
	v = vcpu_at(at);
	v->state = VS_SLEEPS;
	vs_sleep(vm_of(v));
}

SEC("struct_ops/vs_enqueue")
void BPF_PROG(vs_enqueue, struct task_struct *p, u64 flags)
{
	u32 at = index_of(p->pid), victim, runs;
	s32 cpu = scx_bpf_task_cpu(p);
	struct vs_vcpu *v, *other;
	struct vs_vm *vm;
	u64 length;

	if (at == VS_NONE) {
		scx_bpf_dsq_insert(p, QUEUE_STRAY, cfg.slice, flags);
		return;
	}
	v = vcpu_at(at);
	vm = vm_of(v);
	if (v->boost == VS_WANTED) {
		victim = vs_victim(vcpus, vm, at);
		length = vs_boost(&cfg, vm, v, victim, clock, bpf_ktime_get_ns());
		if (length) {
			other = vcpu_at(victim);
			if (other->state == VS_RUNS &&
			    bpf_cpumask_test_cpu(other->cpu, p->cpus_ptr))
				cpu = other->cpu;
			run_now(p, cpu, length, flags);
			return;
		}
	}
	if (!(flags & SCX_ENQ_REENQ))
		vs_turn(&cfg, v);
	runs = running_on(cpu);
	if (flags & SCX_ENQ_WAKEUP && runs != VS_NONE &&
	    vs_preempts(&cfg, vm, vm_of(vcpu_at(runs))))
		run_now(p, cpu, v->turn, flags);
	else
		scx_bpf_dsq_insert(p, QUEUE_VM(v->vm), v->turn, flags);
}

SEC("struct_ops/vs_dispatch")
void BPF_PROG(vs_dispatch, s32 cpu, struct task_struct *prev)
{
	u32 at, i, own = VS_NONE, best, tries;
	u64 tried = 0;

	if (scx_bpf_dsq_move_to_local(QUEUE_STRAY) || scx_bpf_dsq_move_to_local(QUEUE_BOOST))
		return;
	if (prev && prev->scx.flags & SCX_TASK_QUEUED) {
		at = index_of(prev->pid);
		if (at != VS_NONE)
			own = vcpu_at(at)->vm;
	}
	/*
	 * Choose the VM with the lowest vtime, or the next VM if none of its vCPUs may run on this
	 * processor.
	 */
	bpf_for(tries, 0, VS_VMS) {
		best = VS_NONE;
		bpf_for(i, 0, VS_VMS) {
			if (!vm_at(i)->used || tried >> i & 1 ||
			    scx_bpf_dsq_nr_queued(QUEUE_VM(i)) <= 0)
				continue;
			if (best == VS_NONE || vs_before(vm_at(i)->vtime, vm_at(best)->vtime))
				best = i;
		}
		if (best == VS_NONE)
			return;
		/* The last vCPU continues if its VM still has used less time. */
		if (own != VS_NONE && own != best &&
		    vs_before(vm_at(own)->vtime, vm_at(best)->vtime) &&
		    scx_bpf_dsq_nr_queued(QUEUE_VM(own)) <= 0) {
			prev->scx.slice = cfg.slice;
			return;
		}
		if (scx_bpf_dsq_move_to_local(QUEUE_VM(best)))
			return;
		tried |= 1ULL << (best & 63);
	}
}

SEC("struct_ops/vs_running")
void BPF_PROG(vs_running, struct task_struct *p)
{
	u32 at = index_of(p->pid);
	s32 cpu = scx_bpf_task_cpu(p);
	struct vs_vcpu *v;
	struct vs_vm *vm;

	on_cpu[cpu & (VS_CPUS - 1)] = at + 1;
	if (at == VS_NONE)
		return;
	v = vcpu_at(at);
	vm = vm_of(v);
	vs_start(vm, v, cpu, bpf_ktime_get_ns());
	if (v->boost == VS_WANTED)	/* it runs without a boost */
		v->boost = VS_PLAIN;
	if (v->boost == VS_PLAIN && vs_before(clock, vm->vtime))
		clock = vm->vtime;
}

SEC("struct_ops/vs_stopping")
void BPF_PROG(vs_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);
	u32 at = index_of(p->pid);
	struct vs_vcpu *v;
	u64 now;

	on_cpu[cpu & (VS_CPUS - 1)] = 0;
	if (at == VS_NONE)
		return;
	now = bpf_ktime_get_ns();
	v = vcpu_at(at);
	vs_stop(vcpus, vm_of(v), v, at, !runnable || !p->scx.slice, now);
	v->waits = now;
	v->state = runnable ? VS_WAITS : VS_SLEEPS;
}

SEC("struct_ops/vs_exit")
void BPF_PROG(vs_exit, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(ended.reason, sizeof(ended.reason), info->reason);
	bpf_probe_read_kernel_str(ended.message, sizeof(ended.message), info->msg);
	ended.kind = info->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops vsched = {
	.select_cpu = (void *)vs_select_cpu,
	.enqueue = (void *)vs_enqueue,
	.dispatch = (void *)vs_dispatch,
	.runnable = (void *)vs_runnable,
	.running = (void *)vs_running,
	.stopping = (void *)vs_stopping,
	.quiescent = (void *)vs_quiescent,
	.enable = (void *)vs_enable,
	.init = (void *)vs_init,
	.exit = (void *)vs_exit,
	.flags = SCX_OPS_SWITCH_PARTIAL,
	.name = "stargate_vsched",
};

/*
 * Called when KVM delivers an interrupt to a vCPU. The current thread shows the sender: the vCPU
 * itself (its timer), another vCPU of the VM, or a device (any other thread).
 */
SEC("fentry/__apic_accept_irq")
int BPF_PROG(on_interrupt, struct kvm_lapic___sg *apic, int mode, int vector)
{
	u64 key = (u64)BPF_CORE_READ(apic, vcpu);
	u32 tid = bpf_get_current_pid_tgid(), *known, at, from;
	bool device = true;
	struct vs_vcpu *v;

	if (mode != FIXED && mode != LOWEST)
		return 0;
	known = bpf_map_lookup_elem(&by_vcpu, &key);
	if (!known)
		return 0;
	at = *known;
	if (at == VS_NONE)
		return 0;
	v = vcpu_at(at);
	if (v->tid == tid)
		return 0;
	from = index_of(tid);
	if (from != VS_NONE)
		device = vcpu_at(from)->boost == VS_BOOSTED;
	if (!vs_event(&cfg, vm_of(v), v, device, clock, bpf_ktime_get_ns()))
		return 0;
	if (watch_only) {
		v->boost = VS_PLAIN;
		return 0;
	}
	/*
	 * If the vCPU sleeps, the interrupt wakes it, and vs_enqueue() boosts it. If the vCPU
	 * waits, only the kernel may remove it from its queue.
	 */
	if (v->state == VS_WAITS)
		scx_bpf_dsq_reenq(QUEUE_VM(v->vm), 0);
	return 0;
}

/*
 * Reports a vCPU that enters its guest. This happens often, so the daemon attaches the program only
 * for short periods.
 */
SEC("raw_tp/kvm_entry")
int on_entry(struct bpf_raw_tracepoint_args *ctx)
{
	struct kvm_vcpu___sg *vcpu = (void *)ctx->args[0];
	u64 key = (u64)vcpu, both = bpf_get_current_pid_tgid();
	struct vs_found it = { .vcpu = key, .tgid = both >> 32 };
	u32 tid = both;

	if (bpf_map_lookup_elem(&by_vcpu, &key))
		return 0;
	it.id = BPF_CORE_READ(vcpu, vcpu_id);
	bpf_map_update_elem(&found, &tid, &it, BPF_ANY);
	return 0;
}

/* Takes the same measurements at each context switch under the kernel's own scheduler. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	u32 was = index_of(prev->pid), at = index_of(next->pid);
	u64 now = bpf_ktime_get_ns();
	struct vs_vcpu *v;

	if (was != VS_NONE) {
		v = vcpu_at(was);
		vs_stop(vcpus, vm_of(v), v, was, true, now);
		v->state = preempt || !prev_state ? VS_WAITS : VS_SLEEPS;
	}
	if (at != VS_NONE) {
		v = vcpu_at(at);
		vs_start(vm_of(v), v, bpf_get_smp_processor_id(), now);
	}
	return 0;
}
