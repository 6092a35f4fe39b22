// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/pool/pooltest"
)

// class is an error of a zone's method, and the gRPC code that must report it.
type class struct {
	err  error
	code codes.Code
}

var classes = map[string]class{
	"no space":  {errkind.New(errkind.NoSpace, "full"), codes.ResourceExhausted},
	"no size":   {errkind.New(errkind.OutOfRange, "too much"), codes.OutOfRange},
	"busy":      {errkind.New(errkind.Busy, "wait"), codes.Aborted},
	"damaged":   {errkind.New(errkind.InUse, "it is torn"), codes.FailedPrecondition},
	"gone":      {errkind.New(errkind.NoZone, "there is no zone"), codes.Unavailable},
	"no answer": {errkind.New(errkind.NoAnswer, "it does not say"), codes.Unavailable},
	"too late":  {errkind.Wrap(errkind.Internal, fmt.Errorf("tool: %w", context.DeadlineExceeded), "volume"), codes.DeadlineExceeded},
	"cancelled": {errkind.Wrap(errkind.Internal, fmt.Errorf("tool: %w", context.Canceled), "volume"), codes.Canceled},
	"unknown":   {errkind.New(errkind.Internal, "broken"), codes.Internal},
}

// at describes a failure: the zone's method, the moment, and the class of the error.
type at struct {
	call  pooltest.Call
	when  pooltest.When
	class string
}

// scenario is one call of the driver, with the state before it.
type scenario struct {
	before func(*world)
	call   func(context.Context, *world) error
	// other returns the expected code if it differs from the class's code, and otherwise
	// Unknown.
	other func(at) codes.Code
	// If this method of the zone fails, the mount's directory remains. kubelet then removes the
	// directory, or calls NodeUnpublishVolume.
	prepares pooltest.Call
	// This object remains while the call fails, so that kubelet repeats the call.
	keeps string
}

func elsewhere(a at) codes.Code {
	if a.class == "gone" {
		return codes.ResourceExhausted // another node may have a zone
	}
	return codes.Unknown
}

// A volume that does not exist is an answer of this call, and not a failure.
func said(classes ...string) func(at) codes.Code {
	return func(a at) codes.Code {
		if slices.Contains(classes, a.class) {
			return codes.OK
		}
		return codes.Unknown
	}
}

// inlineMayBeThere returns the code for a failure after which an inline volume may exist. The code
// is Aborted, because kubelet unpublishes only after codes that leave the outcome open.
func inlineMayBeThere(a at) codes.Code {
	if a.call == pooltest.Get && !slices.Contains([]string{"no space", "busy", "gone", "no answer"}, a.class) {
		return codes.Aborted
	}
	return codes.Unknown
}

func machineHasIt(a at) codes.Code {
	if a.class == "damaged" {
		return codes.Aborted
	}
	return codes.Unknown
}

// The condition reports that the check failed. The rest of the answer is still correct.
func conditionNotKnown(a at) codes.Code {
	if a.call == pooltest.Info {
		return codes.OK
	}
	return codes.Unknown
}

var scenarios = map[string]scenario{
	"create":       {before: nothing, call: func(ctx context.Context, w *world) error { return w.create(ctx, "v", nil) }, other: elsewhere},
	"create again": {before: volume, call: func(ctx context.Context, w *world) error { return w.create(ctx, "v", nil) }, other: elsewhere},
	"after a boot": {before: inactive, call: func(ctx context.Context, w *world) error { return w.create(ctx, "v", nil) }, other: elsewhere},
	"clone":        {before: volume, call: func(ctx context.Context, w *world) error { return w.create(ctx, "c", ofVolume("v")) }, other: elsewhere},
	"restore": {before: snapshotted, call: func(ctx context.Context, w *world) error {
		return w.create(ctx, "c", ofSnapshot(pool.SnapshotName("s")))
	}, other: elsewhere},
	"delete":           {before: volume, call: func(ctx context.Context, w *world) error { return w.delete(ctx, "v") }},
	"expand":           {before: staged, call: func(ctx context.Context, w *world) error { return w.expand(ctx, "v") }},
	"snapshot":         {before: volume, call: func(ctx context.Context, w *world) error { return w.snapshot(ctx, "s", "v") }},
	"drop snapshot":    {before: snapshotted, call: func(ctx context.Context, w *world) error { return w.deleteSnapshot(ctx, "s") }},
	"stage":            {before: volume, call: func(ctx context.Context, w *world) error { return w.stage(ctx, "v") }, prepares: pooltest.Get},
	"publish":          {before: staged, call: func(ctx context.Context, w *world) error { return w.publish(ctx, "v") }, prepares: pooltest.Get},
	"unstage":          {before: staged, call: func(ctx context.Context, w *world) error { return w.unstage(ctx, "v") }},
	"unpublish":        {before: published, call: func(ctx context.Context, w *world) error { return w.unpublish(ctx, "v") }},
	"inline":           {before: nothing, call: func(ctx context.Context, w *world) error { return w.publishInline(ctx) }, other: inlineMayBeThere, prepares: pooltest.Get},
	"unpublish inline": {before: publishedInline, call: func(ctx context.Context, w *world) error { return w.unpublish(ctx, inlineID) }, other: machineHasIt, keeps: folder + "pod"},
	"stats":            {before: staged, call: func(ctx context.Context, w *world) error { return w.stats(ctx, "v") }, other: conditionNotKnown},
	"health":           {before: used, call: func(ctx context.Context, w *world) error { return w.health(ctx, "v") }},
	"capacity": {before: nothing, call: func(ctx context.Context, w *world) error {
		_, err := w.driver.GetCapacity(ctx, &csi.GetCapacityRequest{})
		return err
	}, other: said("gone")},
	"storage health": {before: nothing, call: func(ctx context.Context, w *world) error {
		_, err := w.driver.NodeGetStorageHealth(ctx, &csi.NodeGetStorageHealthRequest{})
		return err
	}, other: said("gone", "no answer")},
	"list": {before: volume, call: func(ctx context.Context, w *world) error {
		_, err := w.driver.ListVolumes(ctx, &csi.ListVolumesRequest{})
		return err
	}, other: conditionNotKnown},
	"list health": {before: used, call: func(ctx context.Context, w *world) error {
		_, err := w.driver.ControllerListVolumeHealth(ctx, &csi.ControllerListVolumeHealthRequest{})
		return err
	}},
	"list snapshots": {before: snapshotted, call: func(ctx context.Context, w *world) error {
		_, err := w.driver.ListSnapshots(ctx, &csi.ListSnapshotsRequest{})
		return err
	}},
	"get": {before: volume, call: func(ctx context.Context, w *world) error {
		_, err := w.driver.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: "v"})
		return err
	}, other: conditionNotKnown},
}

// For each method of the zone that a call uses, the test makes the method fail once with each class
// of error. The call's code names the problem. After the failure, only objects exist that existed
// before, or that exist after success. The repeated call succeeds.
func TestZoneFailsOnce(t *testing.T) {
	places := 0
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			before, after, calls := s.clean(t)
			for _, call := range calls {
				for _, when := range []pooltest.When{pooltest.Before, pooltest.After} {
					for class := range classes {
						if s.failsOnce(t, at{call, when, class}, before, after) {
							places++
						}
					}
				}
			}
		})
	}
	if places < 600 {
		t.Errorf("the zone has failed only %d times", places)
	}
}

// failsOnce runs the scenario with one failure, and reports whether the zone has failed.
func (s scenario) failsOnce(t *testing.T, a at, before, after []string) bool {
	t.Helper()
	w := newWorld(t, pool.Gigabyte)
	s.before(w)
	w.zone.Fail(a.call, a.when, classes[a.class].err)
	err := s.call(context.Background(), w)
	if w.zone.Disarm() {
		return false // the method reported an absent object, so no failure followed
	}
	want := classes[a.class].code
	if s.other != nil && s.other(a) != codes.Unknown {
		want = s.other(a)
	}
	if code := status.Code(grpcstatus.Of(err)); code != want {
		t.Errorf("%+v: %s, %v; should be %s", a, code, err, want)
	}
	left := w.left()
	if s.prepares == a.call && err != nil {
		left = slices.DeleteFunc(left, func(line string) bool { return strings.HasPrefix(line, folder) && !slices.Contains(before, line) })
	}
	if !onTheWay(left, before, after) {
		t.Errorf("%+v: the objects are now %q; before the call they were %q, and after success %q", a, left, before, after)
	}
	if err != nil && s.keeps != "" && !slices.Contains(left, s.keeps) {
		t.Errorf("%+v: the objects are now %q, so kubelet does not repeat the call", a, left)
	}
	if err := s.call(context.Background(), w); err != nil {
		t.Errorf("%+v: again: %v", a, err)
	}
	if left := w.left(); !slices.Equal(left, after) {
		t.Errorf("%+v: after the repeated call the objects are %q; should be %q", a, left, after)
	}
	return true
}

// clean runs the scenario without failures. It returns the objects before and after it, and the
// zone's methods that it called.
func (s scenario) clean(t *testing.T) (before, after []string, calls []pooltest.Call) {
	t.Helper()
	w := newWorld(t, pool.Gigabyte)
	s.before(w)
	before = w.left()
	w.zone.Calls()
	w.must(s.call(context.Background(), w))
	return before, w.left(), slices.Compact(slices.Sorted(slices.Values(w.zone.Calls())))
}

// onTheWay reports whether each object in left also exists in before or in after.
func onTheWay(left, before, after []string) bool {
	return !slices.ContainsFunc(left, func(line string) bool { return !slices.Contains(before, line) && !slices.Contains(after, line) })
}
