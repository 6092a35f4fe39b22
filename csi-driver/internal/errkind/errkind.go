// SPDX-License-Identifier: Apache-2.0

// Package errkind defines the kinds of failure that a caller can distinguish. The failing function
// sets the kind. Only package grpcstatus converts kinds to gRPC codes.
package errkind

import (
	"errors"
	"fmt"
)

// Kind is the kind of a failure.
type Kind int

const (
	// Internal means an unforeseen failure. It may be temporary, but callers treat it as final
	// for this call.
	Internal Kind = iota
	// Invalid means that the request can never be valid.
	Invalid
	// NotFound means that a volume or a path does not exist.
	NotFound
	// Exists means that a different volume or mount of that name exists.
	Exists
	// NoSpace means that the zone has no room for the request now.
	NoSpace
	// OutOfRange means that the size is impossible.
	OutOfRange
	// InUse means that the object is in use, and this use must end first.
	InUse
	// Busy means that another call for the same volume has not ended.
	Busy
	// NoZone means that the node has no zone. The caller must try another node.
	NoZone
	// NoAnswer means that the existence and content of the zone are unknown at present.
	NoAnswer
	// NotReady means that the driver is still working on what the caller needs. The caller must
	// repeat the call.
	NotReady
	// Unsupported means that this driver does not have the call.
	Unsupported
	// Kinds is the number of kinds. It must be the last constant.
	Kinds
)

// Error is a failure of a known kind, with a message for the user.
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

// New returns an Error of the given kind.
func New(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

// Wrap returns an Error of the given kind with err as its cause. It puts a text before the message
// of err.
func Wrap(kind Kind, err error, format string, args ...any) error {
	return &Error{Kind: kind, Text: fmt.Sprintf(format, args...), Err: err}
}

// KindOf returns the outermost kind in err's chain.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Is reports whether err is of the given kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
