// SPDX-License-Identifier: Apache-2.0

// Package klog finds errors in a kernel's log.
package klog

import (
	"regexp"
	"strings"
)

// patterns match the first lines of reports of the kernels 6.1 to 7.2. They follow the lists with
// which kernel developers search their logs: xfstests' _check_dmesg, and syzkaller's. If a
// report also has a line with BUG: or WARNING:, those lists have no other pattern for it. This list
// has one, because a console may lose a line.
var patterns = []string{
	// Reports of any code.
	`\bWARNING:`,
	`\bBUG:`,
	`\bBUG at `,
	`-+\[ cut here \]-+`,
	`\bCall Trace:`,
	`\bOops\b`,
	`\bKernel panic\b`,
	`\bInternal error\b`,

	// The processor's faults in the kernel. For a program's fault, "ip:" follows the name of
	// the fault, and no comma or colon.
	`\bgeneral protection fault[,:]`,
	`\bdouble fault\b`,
	`\bdivide error: `,
	`\binvalid opcode: `,
	`\bstack segment: `,
	`\b[Uu]nable to handle (kernel|page fault)\b`,
	`\bkernel stack (is corrupted|overflow)|\bKernel stack is corrupted\b`,
	`\bcorrupted stack end\b`,

	// Locks, and code that must not run while a lock is held.
	`\bpossible (circular locking|recursive locking|irq lock inversion)\b`,
	`\bINFO: (HARDIRQ|SOFTIRQ|trying to register non-static key|lockdep is turned off)`,
	`\binconsistent lock state\b`,
	`\bbad unlock balance\b`,
	`\bheld lock freed\b`,
	`\block held (when|at) \b`,
	`\bDEBUG_LOCKS_WARN_ON\b`,
	`\bturning off the locking correctness validator\b`,
	`\bsuspicious RCU usage\b`,
	`\bscheduling while atomic\b`,
	`\bsleeping function called from invalid context\b`,
	`\bInvalid wait context\b`,
	`\bhuh, entered\b`,

	// Blocked tasks and stalled processors.
	`\bINFO: task .* blocked\b`,
	`\bINFO: rcu_\w+ .*\bstall`,
	`\brcu_\w+ kthread starved\b`,
	`\bsoft lockup\b`,
	`\bhard LOCKUP\b`,
	`\bnobody cared\b`,
	`\bunregister_netdevice: waiting for\b`,

	// Memory.
	`\bKASAN: `,
	`\bKFENCE: .* in `,
	`\bKMSAN: `,
	`\bKCSAN: `,
	`\bUBSAN: `,
	`\bkmemleak: (\d+ new suspected|Cannot |Memory pool empty|Kernel memory leak detector disabled)`,
	`\bunreferenced object 0x`,
	`\bBUG \S+ \(.*\): `, // a slab cache has remaining objects, or overwritten memory
	`\bSlab cache still has objects\b`,
	`\bslab\b.*\b(corruption|Poison overwritten|Object padding)`,
	`\bBad page (state|map|cache)\b`,
	`\bBad rss-counter\b`,
	`\bbad (pte|pmd|pud|p4d|pgd) `,
	`\brefcount_t: `,
	`\blist_(add|del) corruption\b`,
	`\bODEBUG: (init|activate|deactivate|free|destroy|assert_init)\b`,
	`\busercopy: Kernel memory (exposure|overwrite) attempt\b`,
	`\bdetected (field-spanning write|buffer overflow)\b`,
	`\binvoked oom-killer\b`,

	// File systems, and leaks of a module.
	`\bVFS: Busy inodes after unmount\b`,
	`\bVFS: Close: file count is 0\b`,
	`\bsysfs: cannot create duplicate filename\b`,
	`\bkobject_add_internal failed\b`,

	// The guest's first process.
	`^rig-agent: `,
}

var bad = regexp.MustCompile(strings.Join(patterns, "|"))

// benign matches lines that report no error. Most of them only report that the module is not the
// distribution's.
var benign = regexp.MustCompile(strings.Join([]string{
	`loading out-of-tree module taints kernel`,
	`module verification failed: signature and/or required key missing`,
	// Boot messages about the command line and the debug kernel itself.
	`KASAN: KernelAddressSanitizer initialized`,
}, "|"))

// stamp matches printk's prefix of a message on the console.
var stamp = regexp.MustCompile(`^(<\d+>)?\[ *\d+\.\d+\](\[ *[TC]\d+\])? ?`)

// Report is a part of a log. It begins with a line that matches a pattern.
type Report []string

// maxReport is the maximum length of a report. A KASAN report with its stacks has about 100 lines.
const maxReport = 120

// quiet is the number of lines without a match after which a report ends.
const quiet = 25

// Find returns the reports in a log.
func Find(log string) []Report {
	var reports []Report
	var current Report
	since := 0
	for _, line := range strings.Split(log, "\n") {
		line = strings.TrimRight(line, "\r")
		matches := isBad(line)
		if current == nil && !matches {
			continue
		}
		current = append(current, line)
		since++
		if matches {
			since = 0
		}
		if strings.Contains(line, "---[ end") || since >= quiet || len(current) >= maxReport {
			reports, current, since = append(reports, current), nil, 0
		}
	}
	if current != nil {
		reports = append(reports, current)
	}
	return reports
}

func isBad(line string) bool {
	message := stamp.ReplaceAllString(line, "")
	return bad.MatchString(message) && !benign.MatchString(message)
}
