// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"sync"
	"time"
)

// cycles is the processor's counter, which QEMU's translation shows to guests as it is.
func cycles() uint64

const (
	// cyclesFor is for how long it is watched.
	cyclesFor = 200 * time.Millisecond
	// A look that took longer was interrupted. What the others are late by is less than a
	// hundredth of a percent.
	lookFor = 10 * time.Microsecond
	looks   = 1000
)

// look has clock and counter of one moment; of all looks the shortest, if none is short enough.
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

// kilocycles is how many thousand of them a second has.
var kilocycles = sync.OnceValue(func() uint64 {
	start, first := look()
	time.Sleep(cyclesFor)
	end, last := look()
	return uint64(float64(last-first) / end.Sub(start).Seconds() / 1000)
})
