#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The loops of kernel/module/copy_wide.c on this processor, with an exception table of the test's
# own. The test checks which bytes are copied, and how many if a page of the source or of the target
# is missing. Only one line may have additional words, which a step stored before it ended early.
set -euo pipefail
cd "$(dirname "$0")/../../.."
grep -qw avx /proc/cpuinfo || { echo "0 checks: this processor has no AVX"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

sed -n '/^#define WORD_/p; /^static __always_inline size_t sgfs_\(word_\)\?steps/,/^}/p
	/^static void sgfs_zero_\(words\|steps\)/,/^}/p' kernel/module/copy_wide.c >"$work/steps.h"
[[ $(grep -c vmovntdq "$work/steps.h") -eq 8 && $(grep -c 'WORD_STORE(' "$work/steps.h") -eq 9 ]] ||
	{ echo "the loops of copy_wide.c have changed: adapt this test" >&2; exit 1; }
cat >"$work/test.c" <<'END'
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define __user
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define STEP 128UL
#define FIXUP(at, to) ".pushsection fixups,\"a\"\n.quad " #at ", " #to "\n.popsection\n"
#define _ASM_EXTABLE_UA(at, to) FIXUP(at, to)
#define _ASM_EXTABLE(at, to) FIXUP(at, to)
#include "steps.h"

#define ROOM 73728ul
extern const struct { uint64_t at, to; } __start_fixups[], __stop_fixups[];
static unsigned char *from, *to;
static long checks;

static void fault(int sig, siginfo_t *info, void *context)
{
	greg_t *ip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)sig;
	(void)info;
	for (size_t i = 0; i < (size_t)(__stop_fixups - __start_fixups); i++)
		if (__start_fixups[i].at == (uint64_t)*ip) {
			*ip = (greg_t)__start_fixups[i].to;
			return;
		}
	_exit(9);
}

/* What ends early (in target or source, whichever is first) has copied whole steps up to there. */
static void check_by(size_t (*copy)(void *, const void *, size_t), size_t more, size_t at, size_t of,
		     size_t len)
{
	size_t there = ROOM - at < ROOM - of ? ROOM - at : ROOM - of, want = len < there ? len : there, n;

	memset(to, 0xee, ROOM);
	n = copy(to + at, from + of, len);
	if (more && at + n + more <= ROOM && of + n + more <= ROOM && n < len &&
	    !memcmp(to + at + n, from + of + n, more))
		memset(to + at + n, 0xee, more);	/* the line of words */
	if (n != want / STEP * STEP || memcmp(to + at, from + of, n) || (at && to[at - 1] != 0xee) ||
	    (at + n < ROOM && ROOM - at >= ROOM - of && to[at + n] != 0xee)) {
		printf("%zu bytes from %zu to %zu%s: the function returned %zu\n", len, of, at,
		       more ? " by words" : "", n);
		exit(1);
	}
	for (size_t i = at + n; i < ROOM && i < at + n + 256 && ROOM - at >= ROOM - of; i++)
		if (to[i] != 0xee) {
			printf("%zu bytes from %zu to %zu: byte %zu behind the copied bytes has changed\n",
			       len, of, at, i - at - n);
			exit(1);
		}
	checks++;
}

static size_t by_vectors(void *t, const void *f, size_t len) { return sgfs_steps(t, f, len); }
static size_t by_words(void *t, const void *f, size_t len) { return sgfs_word_steps(t, f, len); }

static void check(size_t at, size_t of, size_t len)
{
	check_by(by_vectors, 0, at, of, len);
	check_by(by_words, 64, at, of, len);
}

static void check_zero(void (*zero)(void *, size_t), size_t at, size_t len)
{
	memset(to, 0xee, ROOM);
	zero(to + at, len);
	for (size_t i = 0; i < ROOM; i++)
		if (to[i] != (i >= at && i < at + len ? 0 : 0xee)) {
			printf("zeroing %zu bytes at %zu: byte %zu is wrong\n", len, at, i);
			exit(1);
		}
	checks++;
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO | SA_NODEFER };

	sigaction(SIGSEGV, &action, NULL);
	from = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (from == MAP_FAILED || to == MAP_FAILED || mprotect(from + ROOM, 4096, PROT_NONE) ||
	    mprotect(to + ROOM, 4096, PROT_NONE))
		return 2;
	for (size_t i = 0; i < ROOM; i++)
		from[i] = (unsigned char)random() & 0x7f;
	for (int i = 0; i < 6000; i++) {
		size_t len = STEP * (1 + (size_t)random() % 400);

		check(64 * ((size_t)random() % 64), (size_t)random() % 4096, len);
		check(0, ROOM - 1 - (size_t)random() % 20000, len);
		check(ROOM - 64 * (1 + (size_t)random() % 300), 0, len);
	}
	for (int i = 0; i < 200; i++) {
		size_t at = 64 * ((size_t)random() % 200);

		check_zero(sgfs_zero_steps, at, STEP * (1 + (size_t)random() % 400));
		check_zero(sgfs_zero_words, at, STEP * (1 + (size_t)random() % 400));
	}
	printf("%ld checks\n", checks);
	return 0;
}
END
gcc -O2 -std=gnu11 -Wall -Wextra -Werror -no-pie -o "$work/test" "$work/test.c"
"$work/test"
