// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"stargate/csi-driver/internal/app"
)

// A killed driver leaves its socket's name. A child of the driver has the driver's open files until
// it runs its own program, so it may still listen at the socket for a moment. A connection in this
// child's queue gets no answer, so a test must wait for the next driver.
func TestAwaitSuccessor(t *testing.T) {
	needsRoot(t)
	n := bareNode(t)
	n.config.ZoneKind = "none"
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(n.dir, "csi.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))))
	done := make(chan error, 1)
	go func() {
		first, err := left.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		time.Sleep(100 * time.Millisecond) // the test waits while a caller sends a request that no process reads
		first.Close()
		left.Close()
		done <- app.Run(ctx, n.config)
	}()
	n.await(done)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
