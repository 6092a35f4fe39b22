// SPDX-License-Identifier: Apache-2.0
/*
 * The policy of stargate-vsched (kernel/vsched/policy.h), with simulated processors, vCPUs and
 * interrupts. The queues here behave like those of vsched.bpf.c; each decision is the policy's own.
 * Each VM must get its share of the processors, with any claims, and an interrupt must reach its
 * vCPU soon, even if all processors are in use.
 */
#include "test.h"
#include "../../vsched/policy.h"

#define STEP	50000ULL	/* ns of a simulated step */
#define CPUS	4

enum kind { IDLE, HOG, WAITER, MIXED };

/*
 * struct work - the load of a vCPU. WAITER sleeps until an interrupt, and then works; MIXED
 * computes and has interrupts.
 */
struct work {
	enum kind kind;
	unsigned int per_mille;	/* chance of an interrupt in a step */
	u64 length, left;	/* length and rest of the work after an interrupt */
	u64 begins;		/* end of the first sleep */
};

struct queue {
	u32 at[VS_VCPUS + 1], n;
};

static struct sim {
	struct vs_config cfg;
	u32 vms_used, cpus;
	struct vs_vm vms[VS_VMS];
	struct vs_vcpu vcpus[VS_VCPUS];
	struct work work[VS_VCPUS];
	struct queue queue[VS_VMS], boosted;
	u32 runs[CPUS];
	s64 left[CPUS];
	u64 clock, now, events, longest_boost, worst_wait[VS_VMS];
	struct rng rng;
} s;

static u64 seed;

static void enqueue(u32 at, bool woken, bool again);

static void push(struct queue *q, u32 at)
{
	CHECK(q->n < VS_VCPUS);
	q->at[q->n++] = at;
}

static u32 pop(struct queue *q)
{
	u32 at = q->at[0];

	memmove(q->at, q->at + 1, --q->n * sizeof(*q->at));
	return at;
}

static struct vs_vm *vm_of(u32 at)
{
	return &s.vms[s.vcpus[at].vm];
}

static void start(u32 cpu, u32 at, u64 length)
{
	struct vs_vcpu *v = &s.vcpus[at];
	u64 waited = s.now - v->waits;

	if (waited > s.worst_wait[v->vm])
		s.worst_wait[v->vm] = waited;
	s.runs[cpu] = at;
	s.left[cpu] = length;
	vs_start(vm_of(at), v, cpu, s.now);
	if (v->boost == VS_WANTED)
		v->boost = VS_PLAIN;
	if (v->boost == VS_PLAIN && vs_before(s.clock, vm_of(at)->vtime))
		s.clock = vm_of(at)->vtime;
}

static void stop(u32 cpu, bool runnable)
{
	u32 at = s.runs[cpu];
	struct vs_vcpu *v = &s.vcpus[at];

	if (v->boost == VS_BOOSTED && s.now - v->start > s.longest_boost)
		s.longest_boost = s.now - v->start;
	vs_stop(s.vcpus, vm_of(at), v, at, true, s.now);
	v->state = runnable ? VS_WAITS : VS_SLEEPS;
	v->waits = s.now;
	s.runs[cpu] = VS_NONE;
	if (runnable)
		enqueue(at, false, false);
	else
		vs_sleep(vm_of(at));
}

static void run_now(u32 at, u32 cpu, u64 length)
{
	u32 runs = s.runs[cpu];

	if (runs != VS_NONE && s.vcpus[runs].boost == VS_BOOSTED) {
		s.vcpus[at].turn = length;
		push(&s.boosted, at);
		return;
	}
	if (runs != VS_NONE)
		stop(cpu, true);
	start(cpu, at, length);
}

static void enqueue(u32 at, bool woken, bool again)
{
	struct vs_vcpu *v = &s.vcpus[at];
	u32 cpu = v->cpu, victim, runs;
	u64 length;

	if (v->boost == VS_WANTED) {
		victim = vs_victim(s.vcpus, vm_of(at), at);
		CHECK_EQ(s.vcpus[victim].vm, v->vm);
		length = vs_boost(&s.cfg, vm_of(at), v, victim, s.clock, s.now);
		if (length) {
			if (s.vcpus[victim].state == VS_RUNS)
				cpu = s.vcpus[victim].cpu;
			run_now(at, cpu, length);
			return;
		}
	}
	if (!again)
		vs_turn(&s.cfg, v);
	runs = s.runs[cpu];
	if (woken && runs != VS_NONE && vs_preempts(&s.cfg, vm_of(at), vm_of(runs)))
		run_now(at, cpu, v->turn);
	else
		push(&s.queue[v->vm], at);
}

static void dispatch(u32 cpu)
{
	u32 best = VS_NONE, at, i;

	if (s.boosted.n) {
		at = pop(&s.boosted);
		start(cpu, at, s.vcpus[at].turn);
		return;
	}
	for (i = 0; i < s.vms_used; i++)
		if (s.queue[i].n && (best == VS_NONE || vs_before(s.vms[i].vtime, s.vms[best].vtime)))
			best = i;
	if (best == VS_NONE)
		return;
	at = pop(&s.queue[best]);
	start(cpu, at, s.vcpus[at].turn);
}

static void wake(u32 at)
{
	struct vs_vcpu *v = &s.vcpus[at];
	u32 cpu;

	v->state = VS_WAITS;
	v->waits = s.now;
	vs_wake(&s.cfg, vm_of(at), s.clock);
	for (cpu = 0; cpu < s.cpus; cpu++) {
		if (s.runs[cpu] == VS_NONE) {
			v->boost = VS_PLAIN;
			start(cpu, at, s.cfg.slice);
			return;
		}
	}
	enqueue(at, true, false);
}

/* Acts as the kernel: queues all waiting vCPUs of a VM again, and removes those that are to run. */
static void requeue(u32 vm)
{
	struct queue old = s.queue[vm];
	u32 i;

	s.queue[vm].n = 0;
	for (i = 0; i < old.n; i++)
		enqueue(old.at[i], false, true);
}

static void interrupt(u32 at)
{
	struct vs_vcpu *v = &s.vcpus[at];
	struct work *w = &s.work[at];
	bool wanted = vs_event(&s.cfg, vm_of(at), v, true, s.clock, s.now);

	s.events++;
	w->left += w->length;
	if (v->state == VS_SLEEPS)
		wake(at);
	else if (wanted && v->state == VS_WAITS)
		requeue(v->vm);
}

static void run_a_step(u32 cpu)
{
	u32 at = s.runs[cpu];
	struct work *w;

	if (at == VS_NONE)
		return;
	w = &s.work[at];
	s.left[cpu] -= STEP;
	w->left -= w->left < STEP ? w->left : STEP;
	if (w->kind == WAITER && !w->left)
		stop(cpu, false);
	else if (s.left[cpu] <= 0)
		stop(cpu, true);
}

static void caps_hold(void)
{
	u32 i;

	for (i = 0; i < s.vms_used; i++)
		CHECK(s.vms[i].spent <= s.vms[i].budget);
	CHECK(s.longest_boost <= s.cfg.boost + STEP);
}

static void step(void)
{
	u32 at, vm, i, cpu;

	s.now += STEP;
	for (cpu = 0; cpu < s.cpus; cpu++)
		run_a_step(cpu);
	for (vm = 0; vm < s.vms_used; vm++) {
		for (i = 0; i < s.vms[vm].vcpus; i++) {
			at = vm * VS_VM_VCPUS + i;
			if (s.work[at].kind != WAITER && s.work[at].kind != IDLE &&
			    s.vcpus[at].state == VS_SLEEPS && s.now >= s.work[at].begins)
				wake(at);
			if (s.work[at].per_mille &&
			    rng_below(&s.rng, 1000) < s.work[at].per_mille)
				interrupt(at);
		}
	}
	for (cpu = 0; cpu < s.cpus; cpu++)
		if (s.runs[cpu] == VS_NONE)
			dispatch(cpu);
	caps_hold();
}

/* --- virtual machines ---------------------------------------------------------------------- */

static void machine(u32 cpus)
{
	u32 i;

	memset(&s, 0, sizeof(s));
	s.cfg = (struct vs_config){ .slice = 3000000, .boost = 500000, .period = 100000000 };
	s.cpus = cpus;
	s.now = 1000000000;
	s.rng.state = seed;
	for (i = 0; i < CPUS; i++)
		s.runs[i] = VS_NONE;
}

static u32 vm(u32 weight)
{
	s.vms[s.vms_used].used = 1;
	s.vms[s.vms_used].weight = weight;
	return s.vms_used++;
}

static u32 vcpu(u32 vm, enum kind kind, unsigned int per_mille, u64 length)
{
	u32 at = vm * VS_VM_VCPUS + s.vms[vm].vcpus++;

	s.vcpus[at] = (struct vs_vcpu){ .vm = vm, .tid = at + 1, .cpu = at % s.cpus };
	s.work[at] = (struct work){ .kind = kind, .per_mille = per_mille, .length = length };
	return at;
}

static void budgets(u32 percent)
{
	u64 all = 0;
	u32 i;

	for (i = 0; i < s.vms_used; i++)
		all += s.vms[i].weight;
	for (i = 0; i < s.vms_used; i++)
		s.vms[i].budget = vs_budget_of(&s.cfg, s.vms[i].weight, all, s.cpus, percent);
}

/*
 * Runs until @events interrupts have come, for at least 5 s: shares become right only in the long
 * run.
 */
static void run_events(u64 events)
{
	u64 end = s.now + 5000000000;

	for (events += s.events; s.events < events || s.now < end; )
		step();
}

static void run_seconds(u64 seconds)
{
	u64 end = s.now + seconds * 1000000000;

	while (s.now < end)
		step();
}

static u64 percentile(const struct vs_vm *m, unsigned int percent)
{
	u64 all = 0, seen = 0;
	u32 i;

	for (i = 0; i < VS_BUCKETS; i++)
		all += m->late[i];
	CHECK(all > 0);
	for (i = 0; i < VS_BUCKETS; i++) {
		seen += m->late[i];
		if (seen * 100 >= all * percent)
			return 1ULL << i;
	}
	return ~0ULL;
}

/* Checks that each VM has had its share of the used time, within 3 %. */
static void fair(void)
{
	u64 ran = 0, weights = 0, share, own;
	u32 i;

	for (i = 0; i < s.vms_used; i++) {
		ran += s.vms[i].ran;
		weights += s.vms[i].weight;
	}
	for (i = 0; i < s.vms_used; i++) {
		share = ran / weights * s.vms[i].weight;
		own = s.vms[i].ran;
		test_note("VM %u ran %" PRIu64 " us, its share is %" PRIu64 " us", i, own / 1000,
			  share / 1000);
		CHECK(own * 100 <= share * 103 && own * 103 >= share * 100);
	}
}

/* --- tests ---------------------------------------------------------------------------------- */

static void hogs_share(void)
{
	u32 i, n, one;

	for (n = 1; n <= 4; n *= 2) {
		machine(n);
		for (i = 0; i < 5; i++)
			for (one = vm(VS_WEIGHT); s.vms[one].vcpus < 4 + i; )
				vcpu(one, HOG, 0, 0);
		budgets(80);
		run_seconds(20);
		fair();
	}
	machine(1);
	for (i = 1; i <= 4; i++) {
		one = vm(i * 50);
		vcpu(one, HOG, 0, 0);
	}
	budgets(80);
	run_seconds(20);
	fair();
}

/* Runs one VM that computes and has interrupts, and four that compute (P5, figure 5). */
static u64 mixed(u64 events, u32 percent, u64 *late99)
{
	u32 one, i;

	machine(1);
	one = vm(VS_WEIGHT);
	vcpu(one, MIXED, 5, 100000);
	for (i = 0; i < 4; i++)
		vcpu(vm(VS_WEIGHT), HOG, 0, 0);
	budgets(percent);
	run_events(events);
	fair();
	*late99 = percentile(&s.vms[one], 99);
	return percentile(&s.vms[one], 50);
}

static void interrupts_are_quick(u64 events)
{
	u64 with, without, with99, without99;

	without = mixed(events, 0, &without99);
	CHECK_EQ(s.vms[0].boosts, 0);
	with = mixed(events, 80, &with99);
	printf("an interrupt of a mixed VM, next to four computing VMs, waits %" PRIu64
	       " us (median), %" PRIu64 " us (99 %%); without boosts %" PRIu64 " us, %" PRIu64
	       " us\n", with, with99, without, without99);
	CHECK(s.vms[0].boosts > 0);
	CHECK(with * 5 <= without);
	CHECK(with99 < without99);
}

/* A VM with constant interrupts gains nothing over a VM with few. */
static void liars_gain_nothing(u64 events)
{
	u32 cpus, liar, honest, i;

	for (cpus = 1; cpus <= 4; cpus *= 4) {
		machine(cpus);
		liar = vm(VS_WEIGHT);
		for (i = 0; i < 4; i++)
			vcpu(liar, MIXED, 1000, 0);
		honest = vm(VS_WEIGHT);
		for (i = 0; i < 4; i++)
			vcpu(honest, MIXED, 2, 100000);
		for (i = 0; i < 3; i++) {
			u32 hog = vm(VS_WEIGHT);

			while (s.vms[hog].vcpus < 4)
				vcpu(hog, HOG, 0, 0);
		}
		budgets(80);
		run_events(events);
		fair();
		CHECK(s.vms[liar].refused > 0);
		CHECK(s.vms[honest].boosts > 0);
		CHECK(percentile(&s.vms[honest], 50) <= 2048);
	}
}

/*
 * Budgets are far too large, because the daemon wrongly assumes that the VMs have all processors,
 * or that other VMs sleep.
 */
static void wrong_budgets_are_harmless(u64 events)
{
	u32 i;

	machine(1);
	vcpu(vm(VS_WEIGHT), MIXED, 1000, 0);
	for (i = 0; i < 4; i++)
		vcpu(vm(VS_WEIGHT), HOG, 0, 0);
	for (i = 0; i < s.vms_used; i++)
		s.vms[i].budget = s.cfg.period;
	run_events(events);
	fair();
	CHECK(s.vms[0].refused > 0);
}

/* A VM with more weight gets more boosts, but no more time than its weight allows. */
static void weights_hold(u64 events)
{
	u32 i;

	machine(2);
	for (i = 0; i < 4; i++) {
		u32 one = vm(100 << i);

		vcpu(one, MIXED, 300, 50000);
		vcpu(one, HOG, 0, 0);
		vcpu(one, HOG, 0, 0);
	}
	budgets(80);
	run_events(events);
	fair();
	for (i = 1; i < 4; i++)
		CHECK(s.vms[i].boosted > s.vms[i - 1].boosted);
}

/* The boosts of one vCPU take time of the VM's other vCPUs in turn. */
static void victims_take_turns(u64 events)
{
	u64 most = 0, least = ~0ULL, ran, all = 0;
	u32 one, i;

	machine(1);
	one = vm(VS_WEIGHT);
	vcpu(one, WAITER, 40, 100000);
	for (i = 0; i < 3; i++)
		vcpu(one, HOG, 0, 0);
	vcpu(vm(VS_WEIGHT), HOG, 0, 0);
	budgets(80);
	run_events(events);
	fair();
	for (i = 1; i <= 3; i++) {
		ran = s.vcpus[i].ran;
		all += s.vcpus[i].owes;
		most = ran > most ? ran : most;
		least = ran < least ? ran : least;
	}
	CHECK(s.vms[one].victims > 0);
	CHECK(most * 100 <= least * 105);
	/* The victims' turns were shortened by the same time. */
	CHECK(all < s.vms[one].boosted / 100 + 10 * s.cfg.slice);
}

static void victims(void)
{
	u32 i, at, x = 2 * VS_VM_VCPUS;

	machine(2);
	vm(VS_WEIGHT);
	vm(VS_WEIGHT);
	vm(VS_WEIGHT);
	for (i = 0; i < 6; i++) {
		at = vcpu(2, HOG, 0, 0);
		s.vcpus[at].cpu = i & 1;
		s.vcpus[at].state = VS_WAITS;
		at = vcpu(1, HOG, 0, 0);
		s.vcpus[at].cpu = 0;
		s.vcpus[at].state = VS_RUNS;
	}
	/*
	 * Victims are on the same processor, and change in turn. A vCPU is never its own victim,
	 * and a vCPU of another VM is never a victim.
	 */
	CHECK_EQ(vs_victim(s.vcpus, &s.vms[2], x), x + 2);
	CHECK_EQ(vs_victim(s.vcpus, &s.vms[2], x), x + 4);
	CHECK_EQ(vs_victim(s.vcpus, &s.vms[2], x), x + 2);
	/* A sleeping vCPU cannot be a victim. */
	s.vcpus[x + 4].state = VS_SLEEPS;
	CHECK_EQ(vs_victim(s.vcpus, &s.vms[2], x), x + 2);
	s.vcpus[x + 2].tid = 0;
	/* Without a vCPU on the same processor, any other one is the victim. */
	CHECK_EQ(vs_victim(s.vcpus, &s.vms[2], x), x + 3);
	CHECK_EQ(vs_victim(s.vcpus, &s.vms[2], x), x + 5);
	CHECK_EQ(vs_victim(s.vcpus, &s.vms[2], x), x + 1);
	for (i = 0; i < 6; i++)
		s.vcpus[x + i].state = VS_SLEEPS;
	CHECK_EQ(vs_victim(s.vcpus, &s.vms[2], x), x);
	/* The boost is deducted from the victim's turns, and counts as used time of the VM. */
	s.vcpus[x].boost = VS_BOOSTED;
	s.vcpus[x].victim = x + 3;
	s.vcpus[x].start = s.now;
	vs_stop(s.vcpus, &s.vms[2], &s.vcpus[x], x, true, s.now + 100000);
	CHECK_EQ(s.vcpus[x + 3].owes, 100000);
	CHECK_EQ(s.vcpus[x].owes, 0);
	CHECK_EQ(s.vms[2].vtime, 100000);
}

/* A VM that wakes after a long sleep does not delay other VMs. */
static void sleep_saves_nothing(void)
{
	u32 i, late, at;

	machine(1);
	for (i = 0; i < 3; i++)
		vcpu(vm(VS_WEIGHT), HOG, 0, 0);
	late = vm(VS_WEIGHT);
	at = vcpu(late, HOG, 0, 0);
	s.work[at].begins = s.now + 10000000000;
	budgets(80);
	run_seconds(11);
	memset(s.worst_wait, 0, sizeof(s.worst_wait));
	run_seconds(1);
	for (i = 0; i < 4; i++)
		CHECK(s.worst_wait[i] <= 6 * s.cfg.slice);
	/* Since it woke, the VM has had a quarter of the time. */
	CHECK(s.vcpus[at].ran < 2000000000 / 4 + 4 * s.cfg.slice);
}

static void small_rules(void)
{
	struct vs_config cfg = { .slice = 3000000, .boost = 500000, .period = 100000000 };
	struct vs_vm m = { .weight = 100, .budget = 700000 };
	struct vs_vcpu v = { .state = VS_WAITS, .owes = 2000000 };

	CHECK_EQ(vs_budget_of(&cfg, 100, 500, 2, 80), 32000000);
	CHECK_EQ(vs_budget_of(&cfg, 100, 0, 2, 80), 0);
	CHECK_EQ(vs_bucket(0), 0);
	CHECK_EQ(vs_bucket(999), 0);
	CHECK_EQ(vs_bucket(1000), 1);
	CHECK_EQ(vs_bucket(~0ULL), VS_BUCKETS - 1);
	/* A victim keeps at least half of its turn. */
	vs_turn(&cfg, &v);
	CHECK_EQ(v.turn, 1500000);
	CHECK_EQ(v.owes, 500000);
	vs_turn(&cfg, &v);
	CHECK_EQ(v.turn, 2500000);
	vs_turn(&cfg, &v);
	CHECK_EQ(v.turn, cfg.slice);
	/*
	 * Timers and plain interrupts between vCPUs do not boost a vCPU; a running vCPU needs no
	 * boost.
	 */
	CHECK(!vs_event(&cfg, &m, &v, false, 0, 1000));
	v.state = VS_RUNS;
	CHECK(!vs_event(&cfg, &m, &v, true, 0, 1000));
	CHECK_EQ(m.events, 1);
	v.state = VS_WAITS;
	CHECK(vs_event(&cfg, &m, &v, true, 0, 1000));
	CHECK(!vs_event(&cfg, &m, &v, true, 0, 1000));	/* the vCPU has a boost already */
	CHECK_EQ(v.event, 1000);
	/*
	 * The last boost of a period gets the rest of the budget; the next period has a new budget.
	 */
	CHECK_EQ(vs_boost(&cfg, &m, &v, 0, 0, 1000), cfg.boost);
	CHECK_EQ(vs_boost(&cfg, &m, &v, 0, 0, 2000), 200000);
	CHECK_EQ(vs_boost(&cfg, &m, &v, 0, 0, 3000), 0);
	CHECK_EQ(v.boost, VS_PLAIN);
	/* The unused rest of a boost returns to the budget, except in a new period. */
	m.spent = 0;
	v.boost = VS_WANTED;
	CHECK_EQ(vs_boost(&cfg, &m, &v, 0, 0, 4000), cfg.boost);
	vs_start(&m, &v, 0, 5000);
	vs_stop(&v, &m, &v, 0, false, 105000);
	CHECK_EQ(v.boost, VS_BOOSTED);
	CHECK_EQ(m.spent, cfg.boost);
	vs_start(&m, &v, 0, 200000);
	vs_stop(&v, &m, &v, 0, true, 300000);
	CHECK_EQ(v.boost, VS_PLAIN);
	CHECK_EQ(m.spent, 200000);
	CHECK_EQ(m.boosted, 200000);
	CHECK_EQ(m.vtime, 200000);
	v.boost = VS_WANTED;
	vs_boost(&cfg, &m, &v, 0, 0, 400000);
	vs_start(&m, &v, 0, 400000);
	CHECK_EQ(vs_budget(&cfg, &m, 0, cfg.period), m.budget);
	vs_stop(&v, &m, &v, 0, true, cfg.period);
	CHECK_EQ(m.spent, 0);
	m.spent = m.budget;
	v.state = VS_WAITS;
	m.vtime = 0;
	CHECK(!vs_event(&cfg, &m, &v, true, 0, cfg.period + 1000));
	CHECK(vs_event(&cfg, &m, &v, true, 0, 2 * cfg.period + 1000));
	/* A VM that is far ahead has no budget. */
	v.boost = VS_PLAIN;
	m.vtime = VS_AHEAD * cfg.slice + 1;
	CHECK(!vs_event(&cfg, &m, &v, true, 0, 2 * cfg.period + 2000));
	CHECK(vs_event(&cfg, &m, &v, true, 1, 2 * cfg.period + 2000));
}

int main(void)
{
	u64 events = test_amount(100000, 1000000, 10000000);

	seed = test_seed();
	hogs_share();
	sleep_saves_nothing();
	interrupts_are_quick(events / 20);
	liars_gain_nothing(events);
	wrong_budgets_are_harmless(events);
	weights_hold(events);
	victims_take_turns(events / 3);
	victims();
	small_rules();
	return test_done();
}
