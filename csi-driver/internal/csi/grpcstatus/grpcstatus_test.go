// SPDX-License-Identifier: Apache-2.0

package grpcstatus

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/errkind"
)

// A failure of any kind becomes a code other than OK. gRPC would treat a status OK as success. Each
// kind has its own code, and an unknown kind becomes Internal.
func TestEachKindHasACode(t *testing.T) {
	for kind := range errkind.Kinds {
		if codeOf[kind] == codes.OK || codeOf[kind] == codes.Unknown {
			t.Errorf("kind %d has no code", kind)
		}
	}
	for _, kind := range []errkind.Kind{-1, errkind.Kinds, errkind.Kinds + 1} {
		if got := status.Code(Of(errkind.New(kind, "new"))); got != codes.Internal {
			t.Errorf("the unknown kind %d becomes %s", kind, got)
		}
	}
	if got := status.Code(Of(errors.New("of no kind"))); got != codes.Internal {
		t.Errorf("an error of no kind is %s", got)
	}
}

func TestCodes(t *testing.T) {
	inner := errkind.New(errkind.NoSpace, "no room")
	for err, want := range map[error]codes.Code{
		errors.New("x"):                                    codes.Internal,
		fmt.Errorf("about: %w", inner):                     codes.ResourceExhausted,
		errkind.Wrap(errkind.NotFound, inner, "outermost"): codes.NotFound,
		status.Error(codes.Canceled, "x"):                  codes.Canceled,
	} {
		if got := status.Code(Of(err)); got != want {
			t.Errorf("%v: %s, should be %s", err, got, want)
		}
	}
	if Of(nil) != nil {
		t.Error("Of(nil) returns an error")
	}
}
