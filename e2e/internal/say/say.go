// SPDX-License-Identifier: Apache-2.0

// Package say prints the rig's own messages to standard error. Standard output is for the output of
// the script.
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

// Step announces a slow operation. The returned function prints the operation's duration.
func Step(format string, args ...interface{}) func() {
	what := fmt.Sprintf(format, args...)
	Line("%s ...", what)
	start := time.Now()
	return func() { Line("%s: %.1f s", what, time.Since(start).Seconds()) }
}
