// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// The driver answers calls and can be stopped while LVM does not answer.
func TestServesWhileTheZoneHangs(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "sgapp") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, name := range []string{stargatectl.Ctl, stargatectl.Mkfs} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexec sleep 600\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c := Config{
		Endpoint: "unix://" + filepath.Join(dir, "csi.sock"), KubeletDir: dir, ToolsDir: dir, ZoneKind: "dax", ZoneName: "sm",
		CallLimit: time.Minute, StopLimit: time.Second,
	}
	c.Driver.Name, c.Driver.NodeID, c.Driver.DefaultSize = "d.example", "n1", 1<<30
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- Run(ctx, c) }()
	conn, err := grpc.NewClient(c.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	within, end := context.WithTimeout(ctx, 30*time.Second)
	defer end()
	if _, err := csi.NewIdentityClient(conn).Probe(within, &csi.ProbeRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Errorf("the driver does not answer: %v", err)
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the driver ends with the error %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the driver does not end")
	}
}

// swept is a zone whose Sweep reports each call, and fails.
type swept struct {
	pool.Nothing
	calls chan struct{}
}

func (z swept) Sweep(context.Context) error {
	z.calls <- struct{}{}
	return errkind.New(errkind.Internal, "broken")
}

// The driver removes incomplete objects when it starts, and does not wait for the next change.
func TestSweeps(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	z, done := swept{calls: make(chan struct{})}, make(chan struct{})
	go func() { sweep(ctx, z, time.Millisecond, time.Minute); close(done) }()
	for range 3 {
		select {
		case <-z.calls:
		case <-time.After(30 * time.Second):
			t.Fatal("the driver does not call Sweep")
		}
	}
	cancel()
	for {
		select {
		case <-z.calls: // one more sweep may have begun
		case <-done:
			return
		}
	}
}
