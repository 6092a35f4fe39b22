// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"errors"
	"syscall"
	"testing"
)

// mapped returns an event whose word is private to this process.
func mapped(name string) *Event {
	return &Event{&object{name: name, page: new([cells]uint64)}}
}

func (c *Cursor) mustBe(t *testing.T, published, consumed uint64) {
	t.Helper()
	p, q, err := c.both()
	if err != nil || p != published || q != consumed {
		t.Fatalf("published %d, consumed %d, %v; not %d and %d", p, q, err, published, consumed)
	}
}

// A count that overruns the count of the other side would make the ring unusable forever, for both
// sides.
func TestCursorHasBounds(t *testing.T) {
	c := &Cursor{mapped("ring.published"), mapped("ring.consumed"), 100}
	for _, step := range []struct {
		call                func(uint64) error
		bytes               uint64
		refused             bool
		published, consumed uint64
	}{
		{c.Publish, 101, true, 0, 0},
		{c.Consume, 1, true, 0, 0},
		{c.Publish, 60, false, 60, 0},
		{c.Publish, 41, true, 60, 0},
		{c.Publish, 1 << 63, true, 60, 0},
		{c.Consume, 61, true, 60, 0},
		{c.Consume, 60, false, 60, 60},
		{c.Publish, 100, false, 160, 60},
		{c.Publish, 1, true, 160, 60},
		{c.Consume, 100, false, 160, 160},
	} {
		err := step.call(step.bytes)
		if step.refused != errors.Is(err, syscall.EINVAL) || (!step.refused && err != nil) {
			t.Fatalf("%d bytes: %v", step.bytes, err)
		}
		c.mustBe(t, step.published, step.consumed)
	}
}
