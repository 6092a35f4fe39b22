// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"sync"
	"time"
)

// cycles is the processor's counter, which QEMU's translation shows to guests as it is.
func cycles() uint64

// cyclesFor is for how long it is watched: what one look is late by is then less than a hundredth of a percent.
const cyclesFor = 200 * time.Millisecond

// kilocycles is how many thousand of them a second has.
var kilocycles = sync.OnceValue(func() uint64 {
	start, first := time.Now(), cycles()
	time.Sleep(cyclesFor)
	passed, last := time.Since(start), cycles()
	return uint64(float64(last-first) / passed.Seconds() / 1000)
})
