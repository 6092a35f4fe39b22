// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/mount-utils"
)

// Clear removes the driver's mounts at a path, with all mounts in them. It does not remove mounts
// of other programs at the path, below it, or of the same kind.
func TestWithin(t *testing.T) {
	entries := []mount.MountInfo{
		{ID: 1, MountPoint: "/", FsType: "ext4"},
		{ID: 2, ParentID: 1, MountPoint: "/pods", FsType: "ext4"},
		{ID: 3, ParentID: 2, MountPoint: "/pods/a", FsType: "ours"},
		{ID: 4, ParentID: 2, MountPoint: "/pods/b", FsType: "nfs"},
		{ID: 5, ParentID: 3, MountPoint: "/pods/a/region", FsType: "tmpfs"},
		{ID: 6, ParentID: 5, MountPoint: "/pods/a/region/in", FsType: "ours"},
		{ID: 7, ParentID: 2, MountPoint: "/pods/c", FsType: "ours"},
		{ID: 8, ParentID: 7, MountPoint: "/pods/c", FsType: "ours"},
		{ID: 9, ParentID: 2, MountPoint: "/pods/d", FsType: "nfs"},
		{ID: 10, ParentID: 9, MountPoint: "/pods/d", FsType: "ours"},
		{ID: 11, ParentID: 2, MountPoint: "/pods/e", FsType: "ours"},
		{ID: 12, ParentID: 11, MountPoint: "/pods/e", FsType: "nfs"},
		{ID: 13, ParentID: 2, MountPoint: "/pods/ab", FsType: "ours"},
	}
	ours := func(e *mount.MountInfo) bool { return e.FsType == "ours" }
	for path, want := range map[string]string{
		"/pods/a": "3 5 6", "/pods/a/region": "", "/pods/a/region/in": "6", "/pods/b": "", "/pods": "", "/": "", "/none": "",
		"/pods/c": "7 8", "/pods/d": "10",
	} {
		all, err := within(entries, path, ours)
		var ids []string
		for _, e := range all {
			ids = append(ids, fmt.Sprint(e.ID))
		}
		if got := strings.Join(ids, " "); err != nil || got != want {
			t.Errorf("%s: %q, %v; should be %q", path, got, err, want)
		}
	}
	if all, err := within(entries, "/pods/e", ours); err == nil || !strings.Contains(err.Error(), "nfs") {
		t.Errorf("Clear would remove another program's mount on top: %v, %v", all, err)
	}
}
