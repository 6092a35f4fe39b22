// SPDX-License-Identifier: Apache-2.0

package klog

import (
	"regexp"
	"strings"
	"testing"
)

// reports has example lines for each pattern.
var reports = map[string][]string{
	`\bWARNING:`: {
		`WARNING: CPU: 0 PID: 123 at fs/inode.c:400 drop_nlink+0x28/0x40`,
		`WARNING: kernel/rcu/tree.c:123 at f+0x1/0x2, CPU#0: cat/77`,
		`WARNING:`,
	},
	`\bBUG:`: {
		`BUG: kernel NULL pointer dereference, address: 0000000000000008`,
		`BUG: MAX_LOCKDEP_CHAINS too low!`,
		`BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 62s!`,
		`BUG: sleeping function called`,
	},
	`\bBUG at `: {
		`kernel BUG at mm/slub.c:1234!`,
	},
	`-+\[ cut here \]-+`: {
		`------------[ cut here ]------------`,
	},
	`\bCall Trace:`: {
		`Call Trace:`,
	},
	`\bOops\b`: {
		`Oops: 0000 [#1] PREEMPT SMP`,
		`Oops: Oops: 0002 [#1] SMP NOPTI`,
	},
	`\bKernel panic\b`: {
		`Kernel panic - not syncing: Fatal exception`,
	},
	`\bInternal error\b`: {
		`Internal error: Oops: 96000004 [#1] SMP`,
	},
	`\bgeneral protection fault[,:]`: {
		`general protection fault, probably for non-canonical address 0xdead: 0000 [#1]`,
		`general protection fault: 0000 [#1] PREEMPT SMP`,
	},
	`\bdouble fault\b`: {
		`traps: PANIC: double fault, error_code: 0x0`,
		`double fault: 0000 [#1]`,
	},
	`\bdivide error: `: {
		`divide error: 0000 [#1] PREEMPT SMP`,
	},
	`\binvalid opcode: `: {
		`invalid opcode: 0000 [#1] PREEMPT SMP`,
	},
	`\bstack segment: `: {
		`stack segment: 0000 [#1] PREEMPT SMP`,
	},
	`\b[Uu]nable to handle (kernel|page fault)\b`: {
		`BUG: unable to handle page fault for address: ffffc90000000000`,
		`Unable to handle kernel paging request at virtual address dead`,
	},
	`\bkernel stack (is corrupted|overflow)|\bKernel stack is corrupted\b`: {
		`stack-protector: Kernel stack is corrupted in: sg_read+0x1/0x2`,
		`BUG: TASK stack guard page was hit; kernel stack overflow`,
	},
	`\bcorrupted stack end\b`: {
		`Kernel panic - not syncing: corrupted stack end detected inside scheduler`,
	},
	`\bpossible (circular locking|recursive locking|irq lock inversion)\b`: {
		`WARNING: possible circular locking dependency detected`,
		`[ INFO: possible recursive locking detected ]`,
		`possible irq lock inversion dependency detected`,
	},
	`\bINFO: (HARDIRQ|SOFTIRQ|trying to register non-static key|lockdep is turned off)`: {
		`[ INFO: HARDIRQ-safe -> HARDIRQ-unsafe lock order detected ]`,
		`INFO: trying to register non-static key.`,
		`INFO: lockdep is turned off.`,
	},
	`\binconsistent lock state\b`: {
		`WARNING: inconsistent lock state`,
	},
	`\bbad unlock balance\b`: {
		`WARNING: bad unlock balance detected!`,
	},
	`\bheld lock freed\b`: {
		`WARNING: held lock freed!`,
	},
	`\block held (when|at) \b`: {
		`WARNING: lock held when returning to user space!`,
		`BUG: cat/77, lock held at task exit time!`,
	},
	`\bDEBUG_LOCKS_WARN_ON\b`: {
		`DEBUG_LOCKS_WARN_ON(lock->magic != lock)`,
	},
	`\bturning off the locking correctness validator\b`: {
		`turning off the locking correctness validator.`,
	},
	`\bsuspicious RCU usage\b`: {
		`WARNING: suspicious RCU usage`,
		`[ INFO: suspicious RCU usage. ]`,
	},
	`\bscheduling while atomic\b`: {
		`BUG: scheduling while atomic: cat/77/0x00000002`,
	},
	`\bsleeping function called from invalid context\b`: {
		`BUG: sleeping function called from invalid context at mm/x.c:3`,
	},
	`\bInvalid wait context\b`: {
		`[ BUG: Invalid wait context ]`,
	},
	`\bhuh, entered\b`: {
		`softirq: huh, entered softirq 3 NET_RX 0000 with preempt_count 00000100, exited with 00000101?`,
	},
	`\bINFO: task .* blocked\b`: {
		`INFO: task cat:77 blocked for more than 120 seconds.`,
		`INFO: task my cat:77 blocked in I/O wait for more than 120 seconds.`,
	},
	`\bINFO: rcu_\w+ .*\bstall`: {
		`rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:`,
		`rcu: INFO: rcu_sched self-detected stall on CPU`,
		`rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 0-... } 26 jiffies`,
		`INFO: rcu_tasks detected stalls on tasks:`,
	},
	`\brcu_\w+ kthread starved\b`: {
		`rcu: rcu_preempt kthread starved for 2100 jiffies! g1 f0x0`,
	},
	`\bsoft lockup\b`: {
		`watchdog: BUG: soft lockup - CPU#0 stuck for 134s! [cat:77]`,
	},
	`\bhard LOCKUP\b`: {
		`NMI watchdog: Watchdog detected hard LOCKUP on cpu 0`,
	},
	`\bnobody cared\b`: {
		`irq 11: nobody cared (try booting with the "irqpoll" option)`,
	},
	`\bunregister_netdevice: waiting for\b`: {
		`unregister_netdevice: waiting for eth0 to become free. Usage count = 2`,
	},
	`\bKASAN: `: {
		`BUG: KASAN: slab-out-of-bounds in sg_read+0x1/0x2 [stargatefs]`,
		`KASAN: null-ptr-deref in range [0x0-0x7]`,
	},
	`\bKFENCE: .* in `: {
		`BUG: KFENCE: use-after-free read in sg_read+0x1/0x2`,
	},
	`\bKMSAN: `: {
		`BUG: KMSAN: uninit-value in sg_read+0x1/0x2`,
	},
	`\bKCSAN: `: {
		`BUG: KCSAN: data-race in sg_read / sg_write`,
	},
	`\bUBSAN: `: {
		`UBSAN: array-index-out-of-bounds in fs/x.c:3:1`,
	},
	`\bkmemleak: (\d+ new suspected|Cannot |Memory pool empty|Kernel memory leak detector disabled)`: {
		`kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)`,
		`kmemleak: Cannot insert 0xffff into the object search tree (overlaps existing)`,
		`kmemleak: Memory pool empty, consider increasing CONFIG_DEBUG_KMEMLEAK_MEM_POOL_SIZE`,
		`kmemleak: Kernel memory leak detector disabled`,
	},
	`\bunreferenced object 0x`: {
		`unreferenced object 0xffff888001234560 (size 64):`,
	},
	`\bBUG \S+ \(.*\): `: {
		`BUG sgfs_inode (Tainted: G           O      ): Objects remaining in sgfs_inode on __kmem_cache_shutdown()`,
		`BUG kmalloc-64 (Not tainted): Poison overwritten`,
	},
	`\bSlab cache still has objects\b`: {
		`kmem_cache_destroy sgfs_inode: Slab cache still has objects when called from exit+0x1/0x2`,
	},
	`\bslab\b.*\b(corruption|Poison overwritten|Object padding)`: {
		`slab kmalloc-64: Poison overwritten`,
	},
	`\bBad page (state|map|cache)\b`: {
		`BUG: Bad page state in process cat  pfn:12345`,
		`BUG: Bad page map in process cat  pte:0 pmd:0`,
	},
	`\bBad rss-counter\b`: {
		`BUG: Bad rss-counter state mm:0000 type:MM_FILEPAGES val:1`,
	},
	`\bbad (pte|pmd|pud|p4d|pgd) `: {
		`mm/pgtable-generic.c:54: bad pmd 0000000012345678(00000000deadbeef)`,
	},
	`\brefcount_t: `: {
		`refcount_t: underflow; use-after-free.`,
	},
	`\blist_(add|del) corruption\b`: {
		`list_del corruption. prev->next should be ffff, but was 0`,
		`list_add corruption. next->prev should be prev`,
	},
	`\bODEBUG: (init|activate|deactivate|free|destroy|assert_init)\b`: {
		`ODEBUG: free active (active state 0) object: ffff object type: timer_list hint: sg_beat+0x0`,
	},
	`\busercopy: Kernel memory (exposure|overwrite) attempt\b`: {
		`usercopy: Kernel memory exposure attempt detected from SLUB object 'sgfs_inode' (offset 0, size 8)!`,
	},
	`\bdetected (field-spanning write|buffer overflow)\b`: {
		`memcpy: detected field-spanning write (size 16) of single field "x" at fs/x.c:3 (size 8)`,
		`strcpy: detected buffer overflow: 9 byte write of buffer size 8`,
	},
	`\binvoked oom-killer\b`: {
		`cat invoked oom-killer: gfp_mask=0xcc0`,
	},
	`\bVFS: Busy inodes after unmount\b`: {
		`VFS: Busy inodes after unmount of pmem0 (stargatefs)`,
		`VFS: Busy inodes after unmount of pmem0. Self-destruct in 5 seconds.  Have a nice day...`,
	},
	`\bVFS: Close: file count is 0\b`: {
		`VFS: Close: file count is 0 (f_op=sgfs_file)`,
	},
	`\bsysfs: cannot create duplicate filename\b`: {
		`sysfs: cannot create duplicate filename '/fs/stargatefs/pmem0'`,
	},
	`\bkobject_add_internal failed\b`: {
		`kobject: kobject_add_internal failed for pmem0 with -EEXIST, don't try to register things with the same name in the same directory.`,
	},
	`^rig-agent: `: {
		`rig-agent: the agent ended with status 2`,
	},
}

// stamped returns the line with each form of printk's prefix.
func stamped(line string) []string {
	if strings.HasPrefix(line, "rig-agent: ") {
		return []string{line} // not a kernel message
	}
	return []string{"[   12.345678] " + line, "[    1.000000][  T123] " + line, "<4>[    1.0] " + line + "\r"}
}

func TestEachPatternHasItsReports(t *testing.T) {
	for _, pattern := range patterns {
		if len(reports[pattern]) == 0 {
			t.Errorf("reports has no line for the pattern %s", pattern)
		}
	}
	for pattern, lines := range reports {
		known := false
		for _, p := range patterns {
			known = known || p == pattern
		}
		if !known {
			t.Errorf("the pattern %s does not exist", pattern)
		}
		for _, line := range lines {
			if !regexp.MustCompile(pattern).MatchString(line) {
				t.Errorf("%s does not match: %s", pattern, line)
			}
		}
	}
}

func TestReportsAreFound(t *testing.T) {
	for _, lines := range reports {
		for _, line := range lines {
			for _, shown := range stamped(line) {
				if len(Find("[    0.0] hello\n"+shown+"\n[    2.0] bye\n")) != 1 {
					t.Errorf("Find does not report the line: %s", shown)
				}
			}
		}
	}
}

func TestOrdinaryLinesPass(t *testing.T) {
	for _, line := range []string{
		"stargatefs: loading out-of-tree module taints kernel.",
		"stargatefs: module verification failed: signature and/or required key missing - tainting kernel",
		"stargatefs: pmem0: mounted, map=walk",
		"rcu: Hierarchical RCU implementation.",
		"rcu: \tRCU debug extended QS entry/exit.",
		"rcu: RCU calculated value of scheduler-enlistment delay is 25 jiffies.",
		"kasan: KernelAddressSanitizer initialized",
		"KASAN: KernelAddressSanitizer initialized",
		"kmemleak: Kernel memory leak detector initialized (mem pool available: 15696)",
		"kmemleak: Automatic memory scanning thread started",
		"Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar",
		"ODEBUG: selftest passed",
		"kfence: initialized - using 2097152 bytes for 255 objects at 0x(____ptrval____)-0x(____ptrval____)",
		"Spectre V2 : WARNING-free line without the colon and blank",
		"a.out[77]: segfault at 0 ip 0000 sp 0000 error 4",
		"traps: a.out[77] general protection fault ip:401000 sp:7ffc error:0 in a.out[401000+1000]",
		"traps: a.out[77] trap invalid opcode ip:401000 sp:7ffc error:0 in a.out[401000+1000]",
		"traps: a.out[77] trap divide error ip:401000 sp:7ffc error:0 in a.out[401000+1000]",
		"traps: a.out[77] trap stack segment ip:401000 sp:7ffc error:0 in a.out[401000+1000]",
		"workqueue: sg_work [stargatefs] hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND",
		"hrtimer: interrupt took 5184000 ns",
		"NMI watchdog: Perf NMI watchdog permanently disabled",
		"watchdog: Delayed init of the lockup detector failed: -19",
		"ACPI BIOS Warning (bug): Optional FADT field Pm2ControlBlock has valid Length but zero Address",
		"VFS: Disk quotas dquot_6.6.0",
		"VFS: Mounted root (ext4 filesystem) readonly on device 254:0.",
		"INFO: task manager of some program",
		"rig: end of the log",
		"Warning: unmaintained device",
	} {
		for _, shown := range stamped(line) {
			if found := Find(shown); len(found) != 0 {
				t.Errorf("Find reports a benign line: %s", shown)
			}
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
