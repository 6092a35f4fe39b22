// SPDX-License-Identifier: Apache-2.0

// Package errkind has the kinds of failure that a caller can tell apart. The failing function sets
// the kind. Package grpcstatus alone converts kinds to gRPC codes.
package errkind

import (
	"errors"
	"fmt"
)

// Kind is the kind of a failure.
type Kind int

const (
	// Internal is an unforeseen failure. It may be temporary; callers regard it as final for
	// this call.
	Internal Kind = iota
	// Invalid is a request that is never valid.
	Invalid
	// NotFound is about a volume, or a path, that does not exist.
	NotFound
	// Exists is a different volume, or mount, of that name.
	Exists
	// NoSpace is a request for which the zone has no room now.
	NoSpace
	// OutOfRange is an impossible size.
	OutOfRange
	// InUse is a use that has to end before the request can be met.
	InUse
	// Busy is another call for the same volume that has not ended.
	Busy
	// NoZone is a node without a zone: the caller has to look for room elsewhere.
	NoZone
	// NoAnswer is a zone whose existence and content are unknown at present.
	NoAnswer
	// Unsupported is a call that this driver does not have.
	Unsupported
	// Kinds is the number of kinds, and comes last.
	Kinds
)

// Error is a failure of a known kind with one sentence for the user.
type Error struct {
	Kind Kind
	Text string
	Err  error // the cause, if any
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

// Wrap sets the kind of err, and puts a text before it.
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

// Is reports whether err is of that kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
