// SPDX-License-Identifier: Apache-2.0
/*
 * Copies of slots, while other systems join and leave between any two instructions of the copying
 * system. Single-stepping stops the processor after each instruction (simple on x86 only). A copy
 * never combines one system's slot with another system's identity.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>
#include "internal.h"
#include "systems.h"

#if defined(__x86_64__)

#define SLOT	20
#define TRAP	0x100LL

static struct sg_slot *slot;
static void (*between)(void);
static u64 steps, stop_at;

static void on_trap(int sig, siginfo_t *info, void *ctx)
{
	(void)sig;
	(void)info;
	if (++steps != stop_at)
		return;
	((ucontext_t *)ctx)->uc_mcontext.gregs[REG_EFL] &= ~TRAP;
	between();
}

static void trap(bool on)
{
	if (on)
		__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq;"
				 "lea 128(%%rsp), %%rsp" ::: "memory", "cc");
	else
		__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq;"
				 "lea 128(%%rsp), %%rsp" ::: "memory", "cc");
}

/*
 * Derives machine, boot and host from the incarnation, so that a copy shows to which incarnation
 * each of these belongs.
 */
static void say_who(u32 inc)
{
	memset(slot->machine, (int)inc, 16);
	memset(slot->boot, (int)inc + 100, 16);
	sg_store64_release(&slot->named, inc);
}

static void say_host(u32 inc)
{
	memset(slot->host, (int)inc + 50, 16);
	memset(slot->host_boot, (int)inc + 60, 16);
	sg_store64_release(&slot->hosted, inc);
}

static void begin(u32 state_of, u32 who)
{
	say_who(who);
	say_host(who);
	sg_store64(&slot->state, SG_SLOT_WORD(SG_SLOT_LIVE, state_of));
}

static void introduces_itself(void)
{
	say_who(2);
	say_host(2);
}

static void leaves_and_next_joins(void)
{
	sg_store64(&slot->state, SG_SLOT_WORD(SG_SLOT_FREE, 2));
	sg_store64(&slot->state, SG_SLOT_WORD(SG_SLOT_LIVE, 3));
	say_who(3);
	say_host(3);
}

static void is_of_one(const struct sg_slot *s)
{
	u32 inc = SG_SLOT_INC(s->state);

	if (s->named == inc)
		CHECK(s->machine[0] == (u8)inc && s->machine[15] == (u8)inc &&
		      s->boot[0] == (u8)(inc + 100));
	if (s->hosted == inc)
		CHECK(s->host[0] == (u8)(inc + 50) && s->host_boot[15] == (u8)(inc + 60));
}

static void copied(struct sg_vol *v, u32 state_of, u32 who, void (*what)(void))
{
	struct sg_slot copy;

	between = what;
	for (stop_at = 1;; stop_at++) {
		begin(state_of, who);
		steps = 0;
		trap(true);
		sg_slot_read(v, SLOT, &copy);
		trap(false);
		if (steps < stop_at)
			break;
		is_of_one(&copy);
		/* a slot that does not change is copied completely */
		CHECK_OK(sg_slot_read(v, SLOT, &copy));
		CHECK_EQ(copy.named, SG_SLOT_INC(copy.state));
		CHECK_EQ(copy.hosted, SG_SLOT_INC(copy.state));
		is_of_one(&copy);
	}
	CHECK(stop_at > 20);
}

int main(void)
{
	const struct sigaction act = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	struct tsys s;

	CHECK_OK(sigaction(SIGTRAP, &act, NULL));
	tsys_join(&s, tsys_volume(TEST_SMALL), TEST_SMALL, 1);
	slot = sg_at(&s.v, sg_slot_off(&s.v, SLOT));
	copied(&s.v, 2, 1, introduces_itself);
	copied(&s.v, 2, 2, leaves_and_next_joins);
	memset(slot, 0, sizeof(*slot));
	tsys_leave(&s);
	return test_done();
}

#else

int main(void)
{
	CHECK(sizeof(struct sg_slot) == 256);
	return test_done();
}

#endif
