// SPDX-License-Identifier: Apache-2.0
/*
 * Lets a test act between two loads of the engine: a function of the test runs before and after
 * each access to one page of a volume. The page is inaccessible. The handler of the fault makes it
 * accessible for one instruction, and the handler of the trap after that makes it inaccessible
 * again. x86-64 only, as the engine is.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "internal.h"
#include "test.h"

#define TRAP_FLAG	0x100	/* flag of the processor to trap after the next instruction */

static struct {
	u8 *page;
	void (*told)(void *addr, bool behind);
	void *addr;
	struct sigaction fault, trap;
} is;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	u8 *addr = info->si_addr;

	(void)sig;
	if (addr < is.page || addr >= is.page + SG_PAGE)
		abort();
	CHECK_OK(mprotect(is.page, SG_PAGE, PROT_READ | PROT_WRITE));
	is.addr = addr;
	is.told(addr, false);
	uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	is.told(is.addr, true);
	CHECK_OK(mprotect(is.page, SG_PAGE, PROT_NONE));
	uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

void test_trap(u8 *page, void (*told)(void *addr, bool behind))
{
	struct sigaction fault = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	is.page = page;
	is.told = told;
	CHECK_OK(sigaction(SIGSEGV, &fault, &is.fault));
	CHECK_OK(sigaction(SIGTRAP, &trap, &is.trap));
	CHECK_OK(mprotect(page, SG_PAGE, PROT_NONE));
}

void test_trap_end(void)
{
	CHECK_OK(mprotect(is.page, SG_PAGE, PROT_READ | PROT_WRITE));
	CHECK_OK(sigaction(SIGSEGV, &is.fault, NULL));
	CHECK_OK(sigaction(SIGTRAP, &is.trap, NULL));
}
