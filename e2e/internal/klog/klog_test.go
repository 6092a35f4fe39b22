// SPDX-License-Identifier: Apache-2.0

package klog

import (
	"strings"
	"testing"
)

func TestReportsAreFound(t *testing.T) {
	for _, line := range []string{
		"[   12.345678] WARNING: CPU: 0 PID: 123 at fs/inode.c:400 drop_nlink+0x28/0x40",
		"[    1.000000][  T123] BUG: kernel NULL pointer dereference, address: 0000000000000008",
		"[    1.0] BUG: KASAN: slab-out-of-bounds in sg_read+0x1/0x2 [stargatefs]",
		"[    1.0] Oops: 0000 [#1] PREEMPT SMP",
		"[    1.0] Kernel panic - not syncing: Fatal exception",
		"[    1.0] WARNING: possible circular locking dependency detected",
		"[    1.0] WARNING: suspicious RCU usage",
		"[    1.0] INFO: task cat:77 blocked for more than 120 seconds.",
		"[    1.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
		"[    1.0] watchdog: BUG: soft lockup - CPU#0 stuck for 134s! [cat:77]",
		"[    1.0] UBSAN: array-index-out-of-bounds in fs/x.c:3:1",
		"[    1.0] kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
		"[    1.0] refcount_t: underflow; use-after-free.",
		"[    1.0] list_del corruption. prev->next should be ffff, but was 0",
		"[    1.0] general protection fault, probably for non-canonical address 0xdead: 0000 [#1]",
		"[    1.0] ------------[ cut here ]------------",
		"[    1.0] kernel BUG at mm/slub.c:1234!",
		"[    1.0] BUG: Bad page state in process cat  pfn:12345",
		"[    1.0] WARNING: held lock freed!",
		"[    1.0] cat invoked oom-killer: gfp_mask=0xcc0",
		"[    1.0] KASAN: null-ptr-deref in range [0x0-0x7]",
		"rig-agent: the agent ended with status 2",
	} {
		if len(Find("[    0.0] hello\n"+line+"\n[    2.0] bye\n")) != 1 {
			t.Errorf("not found: %s", line)
		}
	}
}

func TestOrdinaryLinesPass(t *testing.T) {
	for _, line := range []string{
		"[    1.0] stargatefs: loading out-of-tree module taints kernel.",
		"[    1.0] stargatefs: module verification failed: signature and/or required key missing - tainting kernel",
		"[    1.0] stargatefs: pmem0: mounted, map=walk",
		"[    0.0] rcu: Hierarchical RCU implementation.",
		"[    0.0] kasan: KernelAddressSanitizer initialized",
		"[    0.0] Spectre V2 : WARNING-free line without the colon and blank",
		"[    1.0] a.out[77]: segfault at 0 ip 0000 sp 0000 error 4",
		"[    0.0] Warning: unmaintained device",
	} {
		if found := Find(line); len(found) != 0 {
			t.Errorf("reported although benign: %s", line)
		}
	}
}

func TestReportEndsWithItsMarker(t *testing.T) {
	log := strings.Join([]string{
		"before",
		"[    1.0] ------------[ cut here ]------------",
		"[    1.0] WARNING: CPU: 0 PID: 1 at x.c:1 f+0x0/0x1",
		"[    1.0] Call Trace:",
		"[    1.0] ---[ end trace 0000000000000000 ]---",
		"after",
	}, "\n")
	reports := Find(log)
	if len(reports) != 1 || len(reports[0]) != 4 {
		t.Fatalf("got %q", reports)
	}
}

func TestTwoReportsAreTold(t *testing.T) {
	gap := strings.Repeat("[    1.0] fine\n", 2*quiet)
	if reports := Find("[    1.0] Oops: 1\n" + gap + "[    9.0] BUG: 2\n"); len(reports) != 2 {
		t.Fatalf("got %d reports", len(reports))
	}
}
