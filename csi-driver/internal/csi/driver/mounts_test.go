// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/mounts/mountstest"
	"stargate/csi-driver/internal/pool"
)

// The test makes the kernel refuse each mount, bind and unmount of a call once. After the failure,
// only mounts exist that existed before, or that exist after success. No inline volume remains
// without its pod, and the repeated call succeeds.
func TestMountsFailOnce(t *testing.T) {
	shows := []mountstest.Call{mountstest.Entries, mountstest.Mount, mountstest.Bind, mountstest.Close}
	hides := []mountstest.Call{mountstest.Entries, mountstest.Unmount}
	places := 0
	for name, calls := range map[string][]mountstest.Call{
		"stage": shows, "publish": shows, "inline": shows, "unstage": hides, "unpublish": hides, "unpublish inline": hides,
		"delete": hides, "expand": hides, "stats": hides,
	} {
		for _, call := range calls {
			for nth := 1; scenarios[name].mountFailsOnce(t, name, call, nth); nth++ {
				places++
			}
		}
	}
	if places < 20 {
		t.Errorf("the kernel has refused only %d times", places)
	}
}

func (s scenario) mountFailsOnce(t *testing.T, name string, call mountstest.Call, nth int) bool {
	t.Helper()
	reason, want := unix.EIO, codes.Internal
	if call == mountstest.Unmount {
		reason, want = unix.EBUSY, codes.Aborted
	}
	before, after, _ := s.clean(t)
	w := newWorld(t, pool.Gigabyte)
	s.before(w)
	w.table.FailAt(call, nth, reason)
	err := s.call(context.Background(), w)
	if w.table.Disarm() {
		return false
	}
	if code := status.Code(grpcstatus.Of(err)); code != want {
		t.Errorf("%s: %s %d: %s, %v; should be %s", name, call, nth, code, err, want)
	}
	// The comparison leaves out directories, which kubelet removes.
	left := noFolders(w.left())
	if !slices.Equal(left, noFolders(before)) && !onTheWay(left, before, slices.DeleteFunc(slices.Clone(after), isMount)) {
		t.Errorf("%s: %s %d: the mounts are now %q; before the call they were %q, and after success %q", name, call, nth, left, before, after)
	}
	w.must(s.call(context.Background(), w))
	if left := w.left(); !slices.Equal(left, after) {
		t.Errorf("%s: %s %d: after the repeated call the objects are %q; should be %q", name, call, nth, left, after)
	}
	return true
}

func noFolders(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasPrefix(line, folder) })
}

func isMount(line string) bool { return strings.HasPrefix(line, "mount ") }

// If a mount fails halfway and cannot be undone immediately, the code is Aborted, so that kubelet
// unpublishes later.
func TestMountIsLeft(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	staged(w)
	w.table.Fail(mountstest.Unmount, unix.EBUSY)
	w.table.FailAt(mountstest.Bind, 2, unix.EIO)
	if err := w.publish(context.Background(), "v"); status.Code(grpcstatus.Of(err)) != codes.Aborted || w.table.Disarm() {
		t.Errorf("Publish that leaves a mount: %v", err)
	}
	if !slices.Contains(w.left(), "mount pod") {
		t.Errorf("the objects are %q, without the mount", w.left())
	}
	w.must(w.publish(context.Background(), "v"), w.unpublish(context.Background(), "v"), w.unstage(context.Background(), "v"))
	if shown := w.table.Shown(); len(shown) > 0 {
		t.Errorf("mounted is %q", shown)
	}
}
