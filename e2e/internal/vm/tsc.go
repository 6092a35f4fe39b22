// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"sync"
	"time"
)

// cycles returns the processor's time stamp counter. QEMU's emulation shows it to guests unchanged.
func cycles() uint64

const (
	// cyclesFor is the duration of the measurement.
	cyclesFor = 200 * time.Millisecond
	// A look reads the clock and the counter. If it takes longer than lookFor, something has
	// interrupted it. Shorter looks change the result by less than 0.01 percent.
	lookFor = 10 * time.Microsecond
	looks   = 1000
)

// look returns the clock and the counter at one moment. It uses the first look that is short
// enough, or the shortest look if none is.
func look() (at time.Time, count uint64) {
	least := time.Hour
	for i := 0; i < looks && least > lookFor; i++ {
		before := time.Now()
		c := cycles()
		if took := time.Since(before); took < least {
			at, count, least = before, c, took
		}
	}
	return at, count
}

// kilocycles returns the counter's frequency in kHz.
var kilocycles = sync.OnceValue(func() uint64 {
	start, first := look()
	time.Sleep(cyclesFor)
	end, last := look()
	return uint64(float64(last-first) / end.Sub(start).Seconds() / 1000)
})
