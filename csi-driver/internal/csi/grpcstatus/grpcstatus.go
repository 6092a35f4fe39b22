// SPDX-License-Identifier: Apache-2.0

// Package grpcstatus converts kinds of failure to gRPC codes. It has the only table for this.
package grpcstatus

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/errkind"
)

// codeOf has the code of each kind. After Aborted, Unavailable, DeadlineExceeded and Canceled,
// callers assume that the request may have succeeded or be in progress. They repeat the call until
// they get another code. All other codes are final: callers assume that the failed call left
// nothing. They retry with growing delays, unless the claim has been deleted; after
// ResourceExhausted they retry on another node. OutOfRange and InvalidArgument repeat until the
// request changes.
var codeOf = [errkind.Kinds]codes.Code{
	errkind.Internal:    codes.Internal,
	errkind.Invalid:     codes.InvalidArgument,
	errkind.NotFound:    codes.NotFound,
	errkind.Exists:      codes.AlreadyExists,
	errkind.NoSpace:     codes.ResourceExhausted,
	errkind.OutOfRange:  codes.OutOfRange,
	errkind.InUse:       codes.FailedPrecondition,
	errkind.Busy:        codes.Aborted,
	errkind.NoZone:      codes.Unavailable,
	errkind.NoAnswer:    codes.Unavailable,
	errkind.NotReady:    codes.Unavailable,
	errkind.Unsupported: codes.Unimplemented,
}

// Of converts an error to a gRPC status. An error that already is a status comes from gRPC itself.
func Of(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(code(err), err.Error())
}

// code returns the code for an error. It distinguishes calls that were interrupted from calls that
// failed, because Internal is final. After Internal, a caller drops the call, although the call may
// have created a volume. This volume would then remain when the claim is deleted.
func code(err error) codes.Code {
	kind := errkind.KindOf(err)
	switch {
	case kind == errkind.Internal && errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case kind == errkind.Internal && errors.Is(err, context.Canceled):
		return codes.Canceled
	}
	return codeOfKind(kind)
}

// codeOfKind never returns OK. Otherwise a failure whose kind has no code would be reported as a
// success.
func codeOfKind(kind errkind.Kind) codes.Code {
	if kind < 0 || kind >= errkind.Kinds || codeOf[kind] == codes.OK {
		return codes.Internal
	}
	return codeOf[kind]
}
