// SPDX-License-Identifier: Apache-2.0

// Package errkind has the kinds of failure that a caller can tell apart. What fails says which kind
// it is where it is known; what that is called in gRPC is decided in one place (package driver).
package errkind

import (
	"errors"
	"fmt"
)

// Kind is why something was not done.
type Kind int

const (
	// Internal is whatever nobody has foreseen. It may go away by itself; callers take it as final for this call.
	Internal Kind = iota
	// Invalid is a request that cannot be meant, whenever it is made.
	Invalid
	// NotFound is about a volume, or a path, that is not there.
	NotFound
	// Exists is a volume, or a mount, of that name that is another one.
	Exists
	// NoSpace is a request that the zone has no room for now.
	NoSpace
	// OutOfRange is a size that cannot be had.
	OutOfRange
	// InUse is what has to end before the request can be met.
	InUse
	// Busy is another call for the same volume that has not ended.
	Busy
	// NoZone is a node without a zone: whoever looks for room has to look elsewhere.
	NoZone
	// NoAnswer is a zone of which nobody can say just now whether it is there, and what is in it.
	NoAnswer
	// Unsupported is a call that this driver does not have.
	Unsupported
	// Kinds is how many there are, and stands last.
	Kinds
)

// Error is a failure of a known kind with one sentence for the user.
type Error struct {
	Kind Kind
	Text string
	Err  error // beneath, if any
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Text
	}
	if e.Text == "" {
		return e.Err.Error()
	}
	return e.Text + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// New makes a failure of that kind.
func New(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// Wrap says what kind of failure err is, and before it what was being done.
func Wrap(kind Kind, err error, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Err: err}
}

// KindOf is the outermost kind in err's chain.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Is tells whether err is of that kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
