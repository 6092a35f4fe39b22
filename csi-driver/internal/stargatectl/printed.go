// SPDX-License-Identifier: Apache-2.0

package stargatectl

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Programs print what they find in volumes, and members of a volume write that. So the driver keeps
// no more of their output than this. The largest output is a look at all volumes of a node: about a
// kilobyte for each.
const (
	mostOut  = 32 << 20
	mostSaid = 16 << 10
	// An Event has room for a sentence of this length.
	mostSentence = 900
)

// printed is the first part of a program's output. The program may go on.
type printed struct {
	most int
	text []byte
	cut  bool
}

// Write drops output beyond the limit.
func (p *printed) Write(text []byte) (int, error) {
	n := min(len(text), p.most-len(p.text))
	p.text = append(p.text, text[:n]...)
	p.cut = p.cut || n < len(text)
	return len(text), nil
}

// whole fails if a part is missing.
func (p *printed) whole() ([]byte, error) {
	if p.cut {
		return nil, fmt.Errorf("it has printed more than %d bytes", p.most)
	}
	return p.text, nil
}

// shorten keeps the beginning of a sentence that is too long for an Event.
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
