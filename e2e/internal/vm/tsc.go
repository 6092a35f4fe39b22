// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"sync"
	"time"
)

// cycles is the processor's counter, which QEMU's emulation shows to guests unchanged.
func cycles() uint64

const (
	// cyclesFor is the time over which it is measured.
	cyclesFor = 200 * time.Millisecond
	// A look that took longer was interrupted. The other looks are late by less than a
	// hundredth of a percent.
	lookFor = 10 * time.Microsecond
	looks   = 1000
)

// look returns clock and counter of one moment: of the first look that is short enough, or else of
// the shortest.
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

// kilocycles is the number of thousand cycles in a second.
var kilocycles = sync.OnceValue(func() uint64 {
	start, first := look()
	time.Sleep(cyclesFor)
	end, last := look()
	return uint64(float64(last-first) / end.Sub(start).Seconds() / 1000)
})
