// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"stargate/csi-driver/internal/pool"
)

func (n *node) takeSnapshot(name, source string) *csi.Snapshot {
	n.t.Helper()
	res, err := n.CreateSnapshot(background, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: source})
	if err != nil {
		n.t.Fatal(err)
	}
	return res.GetSnapshot()
}

func (n *node) deleteSnapshot(id string) {
	n.t.Helper()
	if _, err := n.DeleteSnapshot(background, &csi.DeleteSnapshotRequest{SnapshotId: id}); err != nil {
		n.t.Error(err)
	}
}

func (n *node) snapshots(r *csi.ListSnapshotsRequest) []string {
	n.t.Helper()
	res, err := n.ListSnapshots(background, r)
	if err != nil {
		n.t.Fatal(err)
	}
	var ids []string
	for _, e := range res.GetEntries() {
		ids = append(ids, e.GetSnapshot().GetSnapshotId())
	}
	return ids
}

func ofSnapshot(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
		Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id},
	}}
}

func ofVolume(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id},
	}}
}

func copyRequest(name string, size int64, source *csi.VolumeContentSource) *csi.CreateVolumeRequest {
	r := createRequest(name, size)
	r.VolumeContentSource = source
	return r
}

func (n *node) copyOf(name string, size int64, source *csi.VolumeContentSource) *csi.Volume {
	n.t.Helper()
	res, err := n.CreateVolume(background, copyRequest(name, size, source))
	if err != nil {
		n.t.Fatal(err)
	}
	return res.GetVolume()
}

// ctl runs stargatectl on a volume's file.
func (n *node) ctl(args ...string) string {
	n.t.Helper()
	out, err := exec.Command(filepath.Join(n.config.ToolsDir, "stargatectl"), args...).CombinedOutput()
	if err != nil {
		n.t.Fatalf("stargatectl %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (n *node) zoneFile(id string) string { return filepath.Join(n.zoneDir, id+".stargate") }

func (n *node) put(id, name, text string) {
	n.t.Helper()
	from := filepath.Join(n.t.TempDir(), "from")
	if err := os.WriteFile(from, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	n.ctl("put", n.zoneFile(id), from, "/"+name)
}

// holds checks that a volume is clean and has a file with the given text.
func (n *node) holds(id, name, text string) {
	n.t.Helper()
	if out, err := exec.Command(filepath.Join(n.config.ToolsDir, "fsck.stargatefs"), "-n", n.zoneFile(id)).CombinedOutput(); err != nil {
		n.t.Errorf("%s: %v: %s", id, err, out)
	}
	if got := n.ctl("cat", n.zoneFile(id), "/"+name); got != text {
		n.t.Errorf("%s has %q, and not %q", id, got, text)
	}
}

// A snapshot has the volume's content at its moment, and can be copied. Volumes, snapshots and
// copies can be deleted in any order.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	n := newNode(t, gib, "512m")
	n.start()
	n.create("source", 32*mib)
	n.put("source", "file", "first")
	begin := time.Now().Add(-time.Minute)
	s := n.takeSnapshot("snapshot-1", "source")
	if s.GetSizeBytes() != 32*mib || !s.GetReadyToUse() || s.GetSourceVolumeId() != "source" || s.GetCreationTime().AsTime().Before(begin) {
		t.Errorf("the snapshot is %v", s)
	}
	n.put("source", "file", "second")
	if again := n.takeSnapshot("snapshot-1", "source"); again.GetSnapshotId() != s.GetSnapshotId() || !again.GetCreationTime().AsTime().Equal(s.GetCreationTime().AsTime()) {
		t.Errorf("the first call returned %v, and the repeated call %v", s, again)
	}

	restored := n.copyOf("restored", 64*mib, ofSnapshot(s.GetSnapshotId()))
	if restored.GetCapacityBytes() != 64*mib || restored.GetContentSource().GetSnapshot().GetSnapshotId() != s.GetSnapshotId() {
		t.Errorf("the copy is %v", restored)
	}
	n.holds("restored", "file", "first")
	if size := n.ctl("-j", "info", n.zoneFile("restored")); !strings.Contains(size, fmt.Sprint(64*mib)) {
		t.Errorf("the restored volume is not as large as its source: %s", size)
	}
	n.copyOf("restored", 64*mib, ofSnapshot(s.GetSnapshotId()))
	cloned := n.copyOf("cloned", 0, ofVolume("source"))
	if cloned.GetCapacityBytes() != 32*mib {
		t.Errorf("a copy without a size has %d bytes", cloned.GetCapacityBytes())
	}
	n.holds("cloned", "file", "second")
	n.holds("source", "file", "second")

	other := n.takeSnapshot("snapshot-2", "restored")
	if ids := n.snapshots(&csi.ListSnapshotsRequest{}); len(ids) != 2 {
		t.Errorf("snapshots: %v", ids)
	}
	for what, r := range map[string]*csi.ListSnapshotsRequest{
		"by volume": {SourceVolumeId: "restored"}, "by name": {SnapshotId: other.GetSnapshotId()},
	} {
		if ids := n.snapshots(r); !slices.Equal(ids, []string{other.GetSnapshotId()}) {
			t.Errorf("%s: %v", what, ids)
		}
	}
	for _, r := range []*csi.ListSnapshotsRequest{
		{SnapshotId: "none"}, {SourceVolumeId: "none"}, {SnapshotId: other.GetSnapshotId(), SourceVolumeId: "source"}, {SourceVolumeId: "../source"},
	} {
		if ids := n.snapshots(r); len(ids) != 0 {
			t.Errorf("a list of absent snapshots returns %v: %v", r, ids)
		}
	}
	if got, err := n.GetSnapshot(background, &csi.GetSnapshotRequest{SnapshotId: s.GetSnapshotId()}); err != nil || pool.NameOf(got.GetSnapshot().GetSourceVolumeId()) != "source" {
		t.Errorf("the snapshot was %v, and is now %v, %v", s, got, err)
	} else if got.Snapshot.SourceVolumeId = s.GetSourceVolumeId(); !proto.Equal(got.GetSnapshot(), s) { // the request named the source by its old id
		t.Errorf("the snapshot was %v, and is now %v", s, got)
	}
	for id, code := range map[string]codes.Code{"": codes.InvalidArgument, "source": codes.NotFound, "s-none": codes.NotFound, "../x": codes.NotFound} {
		_, err := n.GetSnapshot(background, &csi.GetSnapshotRequest{SnapshotId: id})
		wants(t, "snapshot "+id, err, code)
	}

	// The volume is deleted before its snapshot, and the snapshot before its copies.
	n.delete("source")
	n.copyOf("later", 0, ofSnapshot(s.GetSnapshotId()))
	n.deleteSnapshot(s.GetSnapshotId())
	n.deleteSnapshot(s.GetSnapshotId())
	n.holds("later", "file", "first")
	n.copyOf("restored", 64*mib, ofSnapshot(s.GetSnapshotId())) // created before, so the call finds it
	n.delete("restored")
	n.deleteSnapshot(other.GetSnapshotId())
	n.delete("cloned")
	n.delete("later")
	if files := n.rest(); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

func TestSnapshotRefusals(t *testing.T) {
	n := newNode(t, 256*mib, "512m")
	n.start()
	n.create("source", 32*mib)
	n.create("other", 32*mib)
	s := n.takeSnapshot("taken", "source")
	for _, c := range []struct {
		what  string
		r     *csi.CreateSnapshotRequest
		code  codes.Code
		words []string
	}{
		{"no name", &csi.CreateSnapshotRequest{SourceVolumeId: "source"}, codes.InvalidArgument, nil},
		{"no source", &csi.CreateSnapshotRequest{Name: "new"}, codes.InvalidArgument, nil},
		{"of nothing", &csi.CreateSnapshotRequest{Name: "new", SourceVolumeId: "none"}, codes.NotFound, []string{"none"}},
		{"of a snapshot", &csi.CreateSnapshotRequest{Name: "new", SourceVolumeId: s.GetSnapshotId()}, codes.NotFound, nil},
		{"parameter", &csi.CreateSnapshotRequest{Name: "new", SourceVolumeId: "source", Parameters: map[string]string{"target": "x"}}, codes.InvalidArgument, []string{"target"}},
		{"of another", &csi.CreateSnapshotRequest{Name: "taken", SourceVolumeId: "other"}, codes.AlreadyExists, []string{"source"}},
	} {
		_, err := n.CreateSnapshot(background, c.r)
		wants(t, c.what, err, c.code, c.words...)
	}
	n.copyOf("copied", 0, ofVolume("source"))
	for _, c := range []struct {
		what  string
		r     *csi.CreateVolumeRequest
		code  codes.Code
		words []string
	}{
		{"smaller", copyRequest("new", 16*mib, ofSnapshot(s.GetSnapshotId())), codes.OutOfRange, []string{fmt.Sprint(32 * mib)}},
		{"too large", copyRequest("new", 1<<40, ofVolume("source")), codes.OutOfRange, []string{fmt.Sprint(512 * mib)}},
		{"no room", copyRequest("new", 200*mib, ofVolume("source")), codes.ResourceExhausted, nil},
		{"no snapshot", copyRequest("new", 32*mib, ofSnapshot("s-none")), codes.NotFound, nil},
		{"a volume as snapshot", copyRequest("new", 32*mib, ofSnapshot("source")), codes.NotFound, nil},
		{"a snapshot as volume", copyRequest("new", 32*mib, ofVolume(s.GetSnapshotId())), codes.NotFound, nil},
		{"of another", copyRequest("copied", 32*mib, ofVolume("other")), codes.AlreadyExists, []string{"source"}},
		{"of a snapshot of it", copyRequest("copied", 32*mib, ofSnapshot(s.GetSnapshotId())), codes.AlreadyExists, nil},
		{"empty", createRequest("copied", 32*mib), codes.AlreadyExists, nil},
		{"not a copy", copyRequest("other", 32*mib, ofVolume("source")), codes.AlreadyExists, nil},
	} {
		_, err := n.CreateVolume(background, c.r)
		wants(t, c.what, err, c.code, c.words...)
	}
	_, err := n.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: s.GetSnapshotId()})
	if err != nil || len(n.snapshots(&csi.ListSnapshotsRequest{})) != 1 {
		t.Errorf("deleted as a volume: %v", err)
	}
	if _, err := n.DeleteSnapshot(background, &csi.DeleteSnapshotRequest{SnapshotId: "source"}); err != nil {
		t.Error(err)
	}
	if _, err := n.CreateSnapshot(background, &csi.CreateSnapshotRequest{Name: "of-it", SourceVolumeId: "source"}); err != nil {
		t.Errorf("deleted as a snapshot: %v", err)
	}
	if files := n.left(); len(files) != 6 { // one of the files is the link to the source of the copy
		t.Errorf("left behind: %v", files)
	}
}

// If there is no room for a copy, the error names the sizes, and nothing is left.
func TestSnapshotNoMemory(t *testing.T) {
	n := newNode(t, gib, "72m")
	n.start()
	n.create("source", 48*mib)
	n.put("source", "file", strings.Repeat("bytes of a file ", 2<<20))
	_, err := n.CreateSnapshot(background, &csi.CreateSnapshotRequest{Name: "new", SourceVolumeId: "source"})
	wants(t, "no memory", err, codes.ResourceExhausted, "in use")
	_, err = n.CreateVolume(background, copyRequest("new", 0, ofVolume("source")))
	wants(t, "no memory", err, codes.ResourceExhausted)
	if files := n.left(); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

// The driver stores a snapshot in the node's folder if the class requires this, or if the zone has
// no room. The snapshot takes as much room there as the volume uses.
func TestSnapshotsOutside(t *testing.T) {
	t.Parallel()
	n := newNode(t, gib, "72m")
	n.start()
	n.create("source", 48*mib)
	n.put("source", "file", strings.Repeat("bytes of a file ", 2<<20))
	n.snapshotsOutside(48*mib, "source", func() {})
	n.holds("restored", "file", strings.Repeat("bytes of a file ", 2<<20))
	n.delete("restored")
	if left := n.rest(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// snapshotsOutside takes snapshots of a volume for which the zone has no more room. leave ends all
// uses of the volume, so that it can be deleted.
func (n *node) snapshotsOutside(size int64, source string, leave func()) {
	t := n.t
	t.Helper()
	take := func(target string) error { return n.snapshotCall("", "by-"+target, source, target).do(background) }
	folder, either := pool.SnapshotName("by-folder"), pool.SnapshotName("by-either")
	for _, target := range []string{"folder", "either", "either"} {
		if err := take(target); err != nil {
			t.Fatalf("%s: %v", target, err)
		}
	}
	wants(t, "zone", take("zone"), codes.ResourceExhausted)
	wants(t, "disk", take("disk"), codes.InvalidArgument, "zone, folder or either")
	if ids, there := n.snapshots(&csi.ListSnapshotsRequest{}), n.outside(); len(ids) != 2 || len(there) != 2 {
		t.Errorf("snapshots %v are %v", ids, there)
	}
	st, err := os.Stat(filepath.Join(n.config.SnapshotDir, folder+"@"+source+".snapshot"))
	if err != nil || st.Size() != size || st.Sys().(*syscall.Stat_t).Blocks*512 > size*9/10 {
		t.Errorf("it is %v, %v", st, err)
	}
	leave()
	n.delete(source)
	n.copyOf("restored", 0, ofSnapshot(either))
	n.copyOf("restored", 0, ofSnapshot(either))
	n.deleteSnapshot(either)
	_, err = n.CreateVolume(background, copyRequest("restored", 0, ofSnapshot(folder)))
	wants(t, "a copy of another one", err, codes.AlreadyExists, either)
	n.deleteSnapshot(folder)
	if there := n.outside(); len(there) > 0 {
		t.Errorf("left outside: %v", there)
	}
}

// A node without a folder reports that it has none.
func TestNowhereOutside(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.config.SnapshotDir = ""
	n.start()
	n.create("source", 32*mib)
	for _, target := range []string{"folder", "either"} {
		wants(t, target, n.snapshotCall("", "new", "source", target).do(background), codes.InvalidArgument, "--snapshot-dir")
	}
	if err := n.snapshotCall("", "new", "source", "zone").do(background); err != nil {
		t.Error(err)
	}
}

// If many calls request the same name, one of them creates the object. The other calls fail with
// Aborted, or find the object.
func TestSnapshotsAtOnce(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.start()
	n.create("source", 32*mib)
	done := make(chan error)
	for range 8 {
		go func() {
			_, err := n.CreateSnapshot(background, &csi.CreateSnapshotRequest{Name: "one", SourceVolumeId: "source"})
			done <- err
		}()
	}
	took := 0
	for range 8 {
		switch err := <-done; status.Code(err) {
		case codes.OK:
			took++
		case codes.Aborted:
		default:
			t.Error(err)
		}
	}
	if ids := n.snapshots(&csi.ListSnapshotsRequest{}); took == 0 || len(ids) != 1 {
		t.Errorf("%d calls took the snapshot, and there are %v", took, ids)
	}
}

// The next driver removes incomplete snapshots of a killed driver.
func TestSnapshotsLeftHalfMade(t *testing.T) {
	n := newNode(t, gib, "512m")
	for _, name := range []string{".making-a@", ".making-a@.part", ".deleting-s-1", ".from-b"} {
		if err := os.WriteFile(filepath.Join(n.zoneDir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(n.config.SnapshotDir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".making-a@.part", ".deleting-s-1"} {
		if err := os.WriteFile(filepath.Join(n.config.SnapshotDir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n.start()
	if files := n.rest(); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}
