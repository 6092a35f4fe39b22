// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/pool/pooltest"
)

func (w *world) wants(what string, err error, code codes.Code, words ...string) {
	w.t.Helper()
	if got := status.Code(grpcstatus.Of(err)); got != code {
		w.t.Errorf("%s: %s, %v; should be %s", what, got, err, code)
	}
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			w.t.Errorf("%s: %v says nothing of %q", what, err, word)
		}
	}
}

// While a call for a volume runs, every other call for this volume fails with Aborted. Calls for
// other volumes succeed.
func TestCallsAtOnce(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		before func(*world)
		held   pooltest.Call
		call   func(*world) error
		others []func(*world) error
	}{
		"create": {nothing, pooltest.Create, func(w *world) error { return w.create(ctx, "v", nil) }, []func(*world) error{
			func(w *world) error { return w.create(ctx, "v", nil) }, func(w *world) error { return w.delete(ctx, "v") },
			func(w *world) error { return w.expand(ctx, "v") }, func(w *world) error { return w.stage(ctx, "v") },
		}},
		"grow": {staged, pooltest.Grow, func(w *world) error { return w.expand(ctx, "v") }, []func(*world) error{
			func(w *world) error { return w.expand(ctx, "v") }, func(w *world) error { return w.delete(ctx, "v") },
			func(w *world) error { return w.publish(ctx, "v") }, func(w *world) error { return w.unstage(ctx, "v") },
		}},
		"snapshot": {volume, pooltest.TakeSnapshot, func(w *world) error { return w.snapshot(ctx, "s", "v") }, []func(*world) error{
			func(w *world) error { return w.snapshot(ctx, "s", "v") }, func(w *world) error { return w.deleteSnapshot(ctx, "s") },
		}},
		"inline": {nothing, pooltest.Create, func(w *world) error { return w.publishInline(ctx) }, []func(*world) error{
			func(w *world) error { return w.publishInline(ctx) }, func(w *world) error { return w.unpublish(ctx, inlineID) },
		}},
	} {
		w := newWorld(t, pool.Gigabyte)
		c.before(w)
		reached, release := w.zone.Hold(c.held)
		done := make(chan error, 1)
		go func() { done <- c.call(w) }()
		<-reached
		for i, other := range c.others {
			w.wants(fmt.Sprintf("%s, and %d", name, i), other(w), codes.Aborted, "still in progress")
		}
		w.must(w.create(ctx, "w", nil), w.delete(ctx, "w"))
		release()
		w.must(<-done, c.call(w))
	}
}

// A call whose context ends in the middle returns the matching code. The next call finds and
// completes what it left.
func TestCutOff(t *testing.T) {
	for name, held := range map[string]pooltest.Call{
		"create": pooltest.Create, "clone": pooltest.Clone, "restore": pooltest.Clone, "expand": pooltest.Grow,
		"snapshot": pooltest.TakeSnapshot, "delete": pooltest.Delete, "drop snapshot": pooltest.DeleteSnapshot, "stage": pooltest.Get,
	} {
		for _, code := range []codes.Code{codes.Canceled, codes.DeadlineExceeded} {
			w := newWorld(t, pool.Gigabyte)
			scenarios[name].before(w)
			before := w.left()
			reached, release := w.zone.Hold(held)
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
			if code == codes.DeadlineExceeded {
				ctx, cancel = context.WithTimeout(context.Background(), time.Millisecond)
			}
			done := make(chan error, 1)
			go func() { done <- scenarios[name].call(ctx, w) }()
			if code == codes.Canceled {
				<-reached
				cancel()
			}
			w.wants(name, <-done, code)
			release()
			cancel()
			if left := w.left(); !slices.Equal(left, before) {
				t.Errorf("%s: the objects are %q; before the call they were %q", name, left, before)
			}
			w.zone.Disarm()
			w.must(scenarios[name].call(context.Background(), w))
		}
	}
}

// The driver completes or removes an inline volume even if no caller waits for it any more.
func TestInlineCutOff(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	reached, release := w.zone.Hold(pooltest.Create)
	defer release()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.publishInline(ctx) }()
	<-reached
	cancel()
	w.wants("inline", <-done, codes.Aborted)
	w.must(w.unpublish(context.Background(), inlineID))
	if left := w.left(); len(left) > 0 {
		t.Errorf("the inline volume leaves the objects %q", left)
	}
}

// The size that GetCapacity reports is the size of the largest volume that can be created. For a
// larger volume, the error names this size.
func TestRoom(t *testing.T) {
	w, ctx := newWorld(t, 256*mib), context.Background()
	largest := func() int64 {
		t.Helper()
		res, err := w.driver.GetCapacity(ctx, &csi.GetCapacityRequest{})
		w.must(err)
		return res.GetMaximumVolumeSize().GetValue()
	}
	create := func(name string, size int64) error {
		_, err := w.driver.CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: name, CapacityRange: bytes(size), VolumeCapabilities: []*csi.VolumeCapability{capability},
		})
		return err
	}
	for i := range 4 {
		w.must(create(fmt.Sprint("v", i), 64*mib))
	}
	w.wants("in a full zone", create("x", 16*mib), codes.ResourceExhausted)
	w.wants("a copy in a full zone", w.create(ctx, "x", ofVolume("v0")), codes.OutOfRange) // the node has 64 MiB, and the volume takes 32 MiB
	w.wants("a snapshot in a full zone", w.snapshot(ctx, "s", "v0"), codes.ResourceExhausted)
	w.wants("growing in a full zone", expandTo(w, "v0", 128*mib), codes.OutOfRange, fmt.Sprint(64*mib))
	w.must(w.delete(ctx, "v0"), w.delete(ctx, "v2"))
	if n := largest(); n != 64*mib {
		t.Errorf("the largest possible volume has %d bytes", n)
	}
	w.wants("more than the largest", create("x", 66*mib), codes.ResourceExhausted, fmt.Sprint(64*mib))
	w.must(create("x", largest()))
}

func expandTo(w *world, id string, size int64) error {
	_, err := w.driver.ControllerExpandVolume(context.Background(), &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: bytes(size)})
	return err
}
