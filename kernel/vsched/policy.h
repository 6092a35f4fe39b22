/* SPDX-License-Identifier: (GPL-2.0 OR Apache-2.0) */
/*
 * The policy of stargate-vsched, as plain C: the BPF scheduler and its native test compile the same
 * functions. docs/vcpu-scheduling.md explains these rules (P5, "vSMP Internal").
 *
 * The including file defines u32, s32, u64, s64 and bool. All processors call these functions
 * concurrently and without a lock: sums are atomic, and every other value may be one event old.
 */
#ifndef SG_VSCHED_POLICY_H
#define SG_VSCHED_POLICY_H

#define VS_VMS		64	/* these limits are powers of two: BPF masks indexes */
#define VS_VM_VCPUS	32
#define VS_VCPUS	(VS_VMS * VS_VM_VCPUS)
#define VS_CPUS		1024
#define VS_WEIGHT	100	/* the default weight of a cgroup */
#define VS_BUCKETS	32
#define VS_AHEAD	5	/* turns that a VM may use more than others by boosts */
#define VS_NONE		0xffffffffU

#define VS_ADD(x, n)	__sync_fetch_and_add(&(x), (n))

enum vs_state { VS_SLEEPS, VS_WAITS, VS_RUNS };
enum vs_boost { VS_PLAIN, VS_WANTED, VS_BOOSTED };

/* Parameters of the scheduler. All times are in nanoseconds. */
struct vs_config {
	u64 slice;	/* length of a turn */
	u64 boost;	/* length of the longest boost */
	u64 period;	/* after which a VM's budget is full again */
};

struct vs_vm {
	u32 used, vcpus, weight, last_victim;
	u32 active, pad;	/* vCPUs that run or wait */
	u64 vtime;	/* processor time used, by weight; the VM with the lowest runs next */
	u64 budget;	/* for boosts in a period; the daemon computes it from the weights */
	u64 period, spent;
	/* statistics for `status` */
	u64 ran, events, boosts, boosted, refused, victims;
	u64 late[VS_BUCKETS];	/* events by time until the vCPU ran; bucket n: below 2^n us */
};

struct vs_vcpu {
	u32 vm, tid, tgid, id;
	u32 state, boost, victim;
	s32 cpu;	/* the processor on which it ran last */
	u64 start;	/* time when its last run began */
	u64 waits;	/* time when it began to wait */
	u64 event;	/* time of its first pending interrupt, or 0 */
	u64 owes;	/* time that boosts have taken from it: its next turns are shorter */
	u64 turn;	/* length of its turn */
	u64 rest, period;	/* rest of its boost; the VM's period in which it began */
	u64 ran;
};

/* Returns whether @a has used less than @b. */
static inline bool vs_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/*
 * Counts a vCPU that wakes, and limits the credit that its VM has gained by sleeping to one turn.
 * Without this limit, the VM could later delay other VMs for as long as it had slept. @clock: the
 * vtime of the VM that ran last.
 */
static inline void vs_wake(const struct vs_config *cfg, struct vs_vm *vm, u64 clock)
{
	u64 least = clock - cfg->slice;

	if (VS_ADD(vm->active, 1) == 0 && vs_before(vm->vtime, least))
		vm->vtime = least;
}

static inline void vs_sleep(struct vs_vm *vm)
{
	if (vm->active)
		VS_ADD(vm->active, -1);
}

/* Returns whether the waking VM preempts the running VM. This is true if the running VM has used
 * more than one turn more than the waking VM. */
static inline bool vs_preempts(const struct vs_config *cfg, const struct vs_vm *waking,
			       const struct vs_vm *running)
{
	return vs_before(waking->vtime + cfg->slice, running->vtime);
}

/*
 * Returns the rest of the VM's budget of boosts in this period. A VM that is VS_AHEAD turns ahead
 * of the others gets 0. This limit is needed because VMs may get less of the processors' time than
 * the budgets assume.
 */
static inline u64 vs_budget(const struct vs_config *cfg, struct vs_vm *vm, u64 clock, u64 now)
{
	u64 spent;

	if (vs_before(clock + VS_AHEAD * cfg->slice, vm->vtime))
		return 0;
	if (now - vm->period >= cfg->period) {
		vm->period = now;
		vm->spent = 0;
	}
	spent = vm->spent;
	return spent < vm->budget ? vm->budget - spent : 0;
}

/*
 * Handles an interrupt for vCPU @v, and returns whether @v should run immediately. @device: the
 * sender is a device, or a vCPU that runs because of a boost. Interrupts by other vCPUs and by
 * timers get no boost.
 */
static inline bool vs_event(const struct vs_config *cfg, struct vs_vm *vm, struct vs_vcpu *v,
			    bool device, u64 clock, u64 now)
{
	if (!device)
		return false;
	VS_ADD(vm->events, 1);
	if (v->state == VS_RUNS)
		return false;
	if (!v->event)
		v->event = now;
	if (v->boost != VS_PLAIN)
		return false;
	if (!vs_budget(cfg, vm, clock, now)) {
		VS_ADD(vm->refused, 1);
		return false;
	}
	v->boost = VS_WANTED;
	return true;
}

/*
 * Returns the index of the victim: the vCPU from whose time a boost of @all[@x] is taken. This is
 * another vCPU of the same VM that runs or waits, preferably on the same processor, the next one
 * after the last victim. If there is no such vCPU, it is @x itself.
 */
static inline u32 vs_victim(struct vs_vcpu *all, struct vs_vm *vm, u32 x)
{
	u32 base = x & ~(VS_VM_VCPUS - 1), last = vm->last_victim, any = VS_NONE, at, i;
	s32 cpu = all[x & (VS_VCPUS - 1)].cpu;

	for (i = 1; i <= VS_VM_VCPUS; i++) {
		at = (base + ((last + i) & (VS_VM_VCPUS - 1))) & (VS_VCPUS - 1);
		if (at == x || !all[at].tid || all[at].state == VS_SLEEPS)
			continue;
		if (all[at].cpu == cpu) {
			any = at;
			break;
		}
		if (any == VS_NONE)
			any = at;
	}
	if (any == VS_NONE)
		return x;
	vm->last_victim = any & (VS_VM_VCPUS - 1);
	return any;
}

/*
 * Starts a boost of a vCPU. Returns its length, or 0 if the budget is used up. The length is taken
 * from the budget immediately, so that concurrent boosts cannot exceed the budget. vs_stop()
 * returns the unused rest to the budget.
 */
static inline u64 vs_boost(const struct vs_config *cfg, struct vs_vm *vm, struct vs_vcpu *v,
			   u32 victim, u64 clock, u64 now)
{
	u64 length = vs_budget(cfg, vm, clock, now);

	if (!length) {
		v->boost = VS_PLAIN;
		VS_ADD(vm->refused, 1);
		return 0;
	}
	if (length > cfg->boost)
		length = cfg->boost;
	VS_ADD(vm->spent, length);
	v->boost = VS_BOOSTED;
	v->victim = victim;
	v->rest = length;
	v->period = vm->period;
	VS_ADD(vm->boosts, 1);
	return length;
}

/* Sets the length of a vCPU's turn. A victim loses at most half of each turn, so it never starves.
 * */
static inline void vs_turn(const struct vs_config *cfg, struct vs_vcpu *v)
{
	u64 owes = v->owes, pays = owes < cfg->slice / 2 ? owes : cfg->slice / 2;

	if (pays)
		VS_ADD(v->owes, -pays);
	v->turn = cfg->slice - pays;
}

static inline u32 vs_bucket(u64 ns)
{
	u64 us = ns / 1000;
	u32 n;

	for (n = 0; n < VS_BUCKETS - 1 && us >> n; n++)
		;
	return n;
}

/* Records that the vCPU starts to run on @cpu, and how long its first interrupt has waited. */
static inline void vs_start(struct vs_vm *vm, struct vs_vcpu *v, s32 cpu, u64 now)
{
	u64 event = v->event;

	v->state = VS_RUNS;
	v->start = now;
	v->cpu = cpu;
	if (!event)
		return;
	v->event = 0;
	VS_ADD(vm->late[vs_bucket(now - event) & (VS_BUCKETS - 1)], 1);
}

/*
 * Records that the vCPU has stopped. All of the run time is charged to the VM, also boosts, so a
 * VM gains no time by boosts. @over: the boost has ended; otherwise it may continue after an
 * interruption. @all: all vCPUs, to find the victim.
 */
static inline void vs_stop(struct vs_vcpu *all, struct vs_vm *vm, struct vs_vcpu *v, u32 self,
			   bool over, u64 now)
{
	u64 ran = now - v->start;
	u32 victim = v->victim & (VS_VCPUS - 1), weight = vm->weight ? vm->weight : VS_WEIGHT;

	v->start = now;
	v->ran += ran;
	VS_ADD(vm->ran, ran);
	VS_ADD(vm->vtime, ran * VS_WEIGHT / weight);
	if (v->boost != VS_BOOSTED)
		return;
	v->rest -= ran < v->rest ? ran : v->rest;
	VS_ADD(vm->boosted, ran);
	if (victim != self)
		VS_ADD(all[victim].owes, ran);
	if (!over)
		return;
	if (v->rest && v->period == vm->period)
		VS_ADD(vm->spent, -v->rest);
	if (victim != self)
		VS_ADD(vm->victims, 1);
	v->boost = VS_PLAIN;
}

/* Returns a VM's budget of boosts in a period: a percentage of its share of all processors. */
static inline u64 vs_budget_of(const struct vs_config *cfg, u32 weight, u64 all_weights, u32 cpus,
			       u32 percent)
{
	return all_weights ? cfg->period * cpus / 100 * percent * weight / all_weights : 0;
}

#endif
