// SPDX-License-Identifier: Apache-2.0

package grpcserver

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"stargate/csi-driver/internal/stargatectl"
)

// within makes a call, and reports whether the call's context ends with the caller, and whether it
// ends with the server.
func within(t *testing.T, method string) (left time.Duration, changes, withCaller, withServer bool) {
	t.Helper()
	work, end := context.WithCancel(context.Background())
	defer end()
	c := &caller{config: Config{CallLimit: time.Hour}, work: work}
	caller, leave := context.WithCancel(context.Background())
	defer leave()
	_, err := c.detach(caller, nil, &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Service/" + method}, func(ctx context.Context, _ any) (any, error) {
		deadline, _ := ctx.Deadline()
		left, changes = time.Until(deadline), stargatectl.Changes(ctx)
		leave()
		withCaller = ctx.Err() != nil
		end()
		select {
		case <-ctx.Done():
			withServer = true
		case <-time.After(10 * time.Second):
		}
		return nil, nil
	})
	if err != nil {
		t.Error(err)
	}
	return left, changes, withCaller, withServer
}

// A call that changes something continues after its caller has ended. A call that only reads ends
// with its caller, or at its own short limit. The test covers each method of CSI.
func TestCallers(t *testing.T) {
	changes := []string{
		"CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume", "ControllerExpandVolume",
		"ControllerModifyVolume", "CreateSnapshot", "DeleteSnapshot", "NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume",
		"NodeUnpublishVolume", "NodeExpandVolume",
	}
	met := 0
	for _, d := range []grpc.ServiceDesc{csi.Identity_ServiceDesc, csi.Controller_ServiceDesc, csi.Node_ServiceDesc} {
		for _, m := range d.Methods {
			change := slices.Contains(changes, m.MethodName)
			if change {
				met++
			}
			left, marked, withCaller, withServer := within(t, m.MethodName)
			if change == withCaller || change != marked || change != (left > lookLimit) || left > time.Hour || !withServer {
				t.Errorf("%s has %v, is marked as a change: %v, ends with its caller: %v, with the server: %v", m.MethodName, left, marked, withCaller, withServer)
			}
		}
	}
	if met != len(changes) {
		t.Errorf("%d calls that change something were expected, and there are %d", len(changes), met)
	}
	if left, _, withCaller, _ := within(t, "NotifyRegistrationStatus"); withCaller || left <= lookLimit {
		t.Errorf("of another service: %v, %v", left, withCaller)
	}
}
