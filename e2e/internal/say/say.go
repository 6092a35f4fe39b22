// SPDX-License-Identifier: Apache-2.0

// Package say is the rig's own voice: lines on standard error, so that
// standard output belongs to the script alone.
package say

import (
	"fmt"
	"os"
	"time"
)

// Line prints one line.
func Line(format string, args ...interface{}) {
	fmt.Fprintf(os.Stderr, "rig: "+format+"\n", args...)
}

// Step announces something slow; the returned function says how long it took.
func Step(format string, args ...interface{}) func() {
	what := fmt.Sprintf(format, args...)
	Line("%s ...", what)
	start := time.Now()
	return func() { Line("%s: %.1f s", what, time.Since(start).Seconds()) }
}
