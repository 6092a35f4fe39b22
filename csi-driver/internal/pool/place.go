// SPDX-License-Identifier: Apache-2.0

package pool

import "sort"

// Span is a range of addresses.
type Span struct{ Base, Size int64 }

// Space is a range of addresses, some of which are taken. A zone of files uses a Space, because a
// VM with several volumes needs them at different addresses. In package dax, LVM and stargatectl do
// this work.
type Space struct {
	Span
	taken []Span
}

// NewSpace returns a Space with the given spans taken. Parts outside of the range have no effect.
func NewSpace(all Span, taken []Span) Space {
	taken = append([]Span{}, taken...)
	sort.Slice(taken, func(i, j int) bool { return taken[i].Base < taken[j].Base })
	return Space{all, taken}
}

// Gaps returns the free spans, sorted by address.
func (s Space) Gaps() []Span {
	var gaps []Span
	at, end := s.Base, s.Base+s.Size
	for _, t := range s.taken {
		if t.Base > at && at < end {
			gaps = append(gaps, Span{at, min(t.Base, end) - at})
		}
		at = max(at, t.Base+t.Size)
	}
	if at < end {
		gaps = append(gaps, Span{at, end - at})
	}
	return gaps
}

// Fit returns a place in the smallest gap that is large enough, so that large gaps remain.
func (s Space) Fit(size, align int64) (base int64, ok bool) {
	best := int64(-1)
	for _, g := range s.Gaps() {
		room, at := inside(g, align)
		if room >= size && (best < 0 || g.Size < best) {
			best, base, ok = g.Size, at, true
		}
	}
	return base, ok
}

// Largest returns the largest size for which Fit finds a place.
func (s Space) Largest(align int64) int64 {
	largest := int64(0)
	for _, g := range s.Gaps() {
		room, _ := inside(g, align)
		largest = max(largest, room)
	}
	return largest
}

// Free returns the sum of the gaps' sizes.
func (s Space) Free() int64 {
	free := int64(0)
	for _, g := range s.Gaps() {
		free += g.Size
	}
	return free
}

// Behind returns the free size that follows the end of a taken span.
func (s Space) Behind(end int64) int64 {
	for _, g := range s.Gaps() {
		if g.Base == end {
			return g.Size
		}
	}
	return 0
}

// inside returns the aligned part of a gap, in complete extents.
func inside(g Span, align int64) (room, at int64) {
	at = RoundUp(g.Base, align)
	room = max(g.Base+g.Size-at, 0)
	return room - room%Extent, at
}

// RoundUp returns n, rounded up to a multiple of unit.
func RoundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// Alignment returns the alignment of an address, at most 1 GiB.
func Alignment(base int64) int64 {
	if base == 0 {
		return Gigabyte
	}
	return min(base&-base, Gigabyte)
}
