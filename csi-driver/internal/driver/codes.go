// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/fault"
)

// The one place where a kind of failure becomes gRPC's. What callers make of them: Aborted,
// Unavailable and Internal are tried again soon, ResourceExhausted on another node or later;
// OutOfRange and InvalidArgument are final for the claim as it stands.
var codeOf = map[fault.Kind]codes.Code{
	fault.Internal:    codes.Internal,
	fault.Invalid:     codes.InvalidArgument,
	fault.NotFound:    codes.NotFound,
	fault.Exists:      codes.AlreadyExists,
	fault.NoSpace:     codes.ResourceExhausted,
	fault.OutOfRange:  codes.OutOfRange,
	fault.InUse:       codes.FailedPrecondition,
	fault.Busy:        codes.Aborted,
	fault.NoZone:      codes.Unavailable,
	fault.NoAnswer:    codes.Unavailable,
	fault.Unsupported: codes.Unimplemented,
}

// Status is an error as gRPC has it. One that is a status already comes from gRPC itself.
func Status(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codeOf[fault.KindOf(err)], err.Error())
}
