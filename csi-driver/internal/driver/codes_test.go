// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/errkind"
)

// A failure of any kind is reported as one: gRPC ignores a status that is OK, and the caller would
// regard the call as done. Each kind has a code of its own, and an unknown one is Internal.
func TestEachKindHasACode(t *testing.T) {
	for kind := range errkind.Kinds {
		if codeOf[kind] == codes.OK || codeOf[kind] == codes.Unknown {
			t.Errorf("kind %d has no code", kind)
		}
	}
	for _, kind := range []errkind.Kind{-1, errkind.Kinds, errkind.Kinds + 1} {
		if got := status.Code(Status(errkind.New(kind, "new"))); got != codes.Internal {
			t.Errorf("kind %d, which is not known, is %s", kind, got)
		}
	}
	if got := status.Code(Status(errors.New("of no kind"))); got != codes.Internal {
		t.Errorf("an error of no kind is %s", got)
	}
}
