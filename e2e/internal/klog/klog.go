// SPDX-License-Identifier: Apache-2.0

// Package klog finds in a kernel's log what must not be there.
package klog

import (
	"regexp"
	"strings"
)

// bad are the beginnings of reports, in all the ways a kernel words them:
// warnings and bugs, oopses, lockdep, KASAN and its kin, hung and starved
// tasks, memory corruption and leaks.
var bad = regexp.MustCompile(strings.Join([]string{
	`\bWARNING: `, `\bBUG: `, `\bBUG at `, `\bINFO: (task|rcu|possible|trying|HARDIRQ|SOFTIRQ)\b`, `\brcu: INFO: `,
	`\bOops\b`, `\bKernel panic\b`, `\bgeneral protection fault\b`, `\bdouble fault\b`, `\bdivide error\b`,
	`\binvalid opcode\b`, `\bstack segment\b`, `\bunable to handle\b`, `\bstack-protector\b`, `\bkernel BUG\b`,
	`\bKASAN\b.*:`, `\bKFENCE: \S*.* in `, `\bKMSAN: `, `\bKCSAN: `, `\bUBSAN: `, `\bkmemleak: \d+ new suspected`, `\bunreferenced object\b`,
	`possible circular locking`, `possible recursive locking`, `possible irq lock inversion`, `inconsistent lock state`,
	`\bbad unlock balance\b`, `\bheld lock freed\b`, `\block held when returning\b`, `DEBUG_LOCKS_WARN_ON`, `suspicious RCU usage`,
	`\brefcount_t: `, `list_(add|del) corruption`, `\bBad page\b`, `\bBad rss-counter\b`, `\bcorrupted stack end\b`, `\bslab\b.*\b(corruption|Poison overwritten|Object padding)`,
	`\bsoft lockup\b`, `\bhard LOCKUP\b`, `\bblocked for more than\b`, `\bscheduling while atomic\b`, `\bsleeping function called\b`,
	`\binvoked oom-killer\b`, `\bCall Trace:`, `-+\[ cut here \]-+`, `^rig-agent: `,
}, "|"))

// benign are lines that would match but only say that the module is not the
// distribution's.
var benign = regexp.MustCompile(strings.Join([]string{
	`loading out-of-tree module taints kernel`,
	`module verification failed: signature and/or required key missing`,
	// Boot messages about the command line and the debug kernel itself.
	`kasan: KernelAddressSanitizer initialized`,
	`KASAN: KernelAddressSanitizer initialized`,
	`Lock dependency validator`,
}, "|"))

// stamp is what printk puts before a message on the console.
var stamp = regexp.MustCompile(`^(<\d+>)?\[ *\d+\.\d+\](\[ *[TC]\d+\])? ?`)

// Report is a part of a log, from the first bad line to its end.
type Report []string

// maxReport is how much of what follows a bad line is shown: a KASAN report
// with its stacks is about a hundred lines.
const maxReport = 120

// quiet is after how many lines without a bad one a report is over.
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
