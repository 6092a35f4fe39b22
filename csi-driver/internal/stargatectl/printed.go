// SPDX-License-Identifier: Apache-2.0

package stargatectl

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The driver keeps no more than this of a program's output. Programs print data from volumes, and
// members of a volume can write any data. The largest valid output describes all volumes of a node,
// with about a kilobyte for each.
const (
	mostOut  = 32 << 20
	mostSaid = 16 << 10
	// The length of a sentence that fits into an Event.
	mostSentence = 900
)

// printed keeps the first part of a program's output. The program may continue to print.
type printed struct {
	most int
	text []byte
	cut  bool
}

// Write stores output, and drops output beyond the limit.
func (p *printed) Write(text []byte) (int, error) {
	n := min(len(text), p.most-len(p.text))
	p.text = append(p.text, text[:n]...)
	p.cut = p.cut || n < len(text)
	return len(text), nil
}

// whole returns the output, or an error if a part of it was dropped.
func (p *printed) whole() ([]byte, error) {
	if p.cut {
		return nil, fmt.Errorf("the program has printed more than %d bytes", p.most)
	}
	return p.text, nil
}

// shorten cuts a sentence that is too long for an Event, and keeps its beginning.
func shorten(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) <= mostSentence {
		return s
	}
	end := mostSentence
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + " ..."
}
