// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"stargate/csi-driver/internal/csi/driver"
	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/outside"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/pool/pooltest"
	"stargate/csi-driver/internal/publish"
)

// another replaces the node's zone with an empty zone of another identity. It starts the driver
// with the list gone of lost zones.
func (w *world) another(id string, gone ...string) {
	w.t.Helper()
	w.zone = pooltest.New(pooltest.Config{ID: id, Base: 64 * pool.Gigabyte, Size: pool.Gigabyte})
	folder, err := mounts.OpenFolder(w.kubelet)
	if err != nil {
		w.t.Fatal(err)
	}
	config := request.Config{Name: "stargate.csi.dev", NodeID: "n1", DefaultSize: 32 * mib, ControllerExpand: true, GoneZones: gone}
	m := mounts.On(w.table)
	w.driver = driver.New(config, w.zone, publish.NewFile(m, w.zone), kernelmodule.New(w.dir), folder)
}

func (w *world) made(name string) (id string) {
	w.t.Helper()
	res, err := w.driver.CreateVolume(context.Background(), &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{capability}})
	w.must(err)
	return res.GetVolume().GetVolumeId()
}

func (w *world) taken(name, source string) (id string) {
	w.t.Helper()
	res, err := w.driver.CreateSnapshot(context.Background(), &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: source})
	w.must(err)
	if got := res.GetSnapshot().GetSourceVolumeId(); got != source {
		w.t.Errorf("the snapshot's source is %q, but the request named %q", got, source)
	}
	return res.GetSnapshot().GetSnapshotId()
}

// The driver refuses to delete a volume of another zone, even if this zone has a volume of that
// name. Otherwise the volume's bytes would remain without any record of them. If the operator has
// declared the other zone lost, the driver regards the volume as deleted.
func TestOfAnotherZone(t *testing.T) {
	ctx, first, second := context.Background(), pool.Identity(pool.DAX, "first"), pool.Identity(pool.DAX, "second")
	w := newWorld(t, pool.Gigabyte)
	w.another(first)
	v := w.made("v")
	s := w.taken("s", v)
	if !strings.HasSuffix(v, "@"+first) || !strings.HasSuffix(s, "@"+first) {
		t.Errorf("the ids of volume and snapshot are %q, %q", v, s)
	}
	w.another(second)
	for _, there := range []bool{false, true} {
		if there {
			w.made("v")
			w.taken("s", "v")
		}
		before := strings.Join(w.left(), "\n")
		w.wants("delete", w.delete(ctx, v), codes.FailedPrecondition, first, second, "--gone-zone "+first)
		_, err := w.driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: s})
		w.wants("delete a snapshot", err, codes.FailedPrecondition, first, second)
		w.wants("stage", w.stage(ctx, v), codes.NotFound)
		w.wants("expand", w.expand(ctx, v), codes.NotFound)
		_, err = w.driver.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: v})
		w.wants("get", err, codes.NotFound)
		_, err = w.driver.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: s})
		w.wants("get a snapshot", err, codes.NotFound)
		list, err := w.driver.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: s})
		if err != nil || len(list.GetEntries()) > 0 {
			t.Errorf("ListSnapshots returns %v, %v", list, err)
		}
		if left := strings.Join(w.left(), "\n"); left != before {
			t.Errorf("the objects were %q, and are %q", before, left)
		}
	}
	w.another(second, first)
	w.must(w.delete(ctx, v))
	_, err := w.driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: s})
	w.must(err)
}

// All nodes have the same list of lost zones. If the node has a zone of this list, the zone is not
// lost, and the driver deletes volumes in it. If the zone does not answer, the call fails.
func TestGoneZoneThatIsHere(t *testing.T) {
	ctx, first := context.Background(), pool.Identity(pool.DAX, "first")
	w := newWorld(t, pool.Gigabyte)
	w.another(first, first)
	v := w.made("v")
	s := w.taken("s", v)
	w.zone.Fail(pooltest.Place, pooltest.Before, errkind.New(errkind.NoAnswer, "no answer"))
	w.wants("delete", w.delete(ctx, v), codes.Unavailable)
	w.zone.Fail(pooltest.Place, pooltest.Before, errkind.New(errkind.NoAnswer, "no answer"))
	_, err := w.driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: s})
	w.wants("delete a snapshot", err, codes.Unavailable)
	if left := w.zone.Left(); len(left) != 2 {
		t.Errorf("there are %q", left)
	}
	_, err = w.driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: s})
	w.must(err, w.delete(ctx, v))
	if left := w.zone.Left(); len(left) != 0 {
		t.Errorf("after the deletions, the zone still has %q", left)
	}
}

// beside adds a folder of snapshots to the node, until its driver ends.
func (w *world) beside(dir string) (end func()) {
	w.t.Helper()
	f, err := outside.Open(context.Background(), dir, "n1")
	if err != nil {
		w.t.Fatal(err)
	}
	kubelet, err := mounts.OpenFolder(w.kubelet)
	if err != nil {
		w.t.Fatal(err)
	}
	config := request.Config{Name: "stargate.csi.dev", NodeID: "n1", DefaultSize: 32 * mib, SnapshotFolder: true}
	m := mounts.On(w.table)
	w.driver = driver.New(config, f.Beside(w.zone), publish.NewFile(m, w.zone), kernelmodule.New(w.dir), kubelet)
	return func() { f.Close() }
}

// The driver deletes a snapshot in a folder only if the node has this folder. With another folder,
// the snapshot's bytes would remain without any record of them. Ids of earlier drivers, which do
// not name a snapshot's place, remain valid.
func TestSnapshotOfAnotherFolder(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, pool.Gigabyte)
	first, second := filepath.Join(w.dir, "first"), filepath.Join(w.dir, "second")
	end := w.beside(first)
	v := w.made("v")
	old := pool.SnapshotName("s")
	file := filepath.Join(first, old+"@v.snapshot")
	put := func() {
		t.Helper()
		if err := os.WriteFile(file, make([]byte, 4096), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put()
	got, err := w.driver.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: old})
	w.must(err)
	id := got.GetSnapshot().GetSnapshotId()
	if of, ok := pool.ParseID(id); !ok || of.Zone == "" || strings.HasSuffix(v, of.Zone) || got.GetSnapshot().GetSourceVolumeId() != "v" {
		t.Errorf("the source of snapshot %s is %v", id, got)
	}
	for _, source := range []string{"v", v} {
		list, err := w.driver.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SourceVolumeId: source})
		if err != nil || len(list.GetEntries()) != 1 || list.GetEntries()[0].GetSnapshot().GetSnapshotId() != id {
			t.Errorf("the snapshots of source %s are %v, %v", source, list, err)
		}
	}
	end()
	end = w.beside(second)
	for range 2 {
		_, err = w.driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
		w.wants("delete", err, codes.FailedPrecondition, old, "is in zone or folder "+strings.TrimPrefix(id, old+"@"), "--gone-zone")
		w.wants("restore", w.create(ctx, "c", ofSnapshot(id)), codes.ResourceExhausted)
		// The call fails even if another snapshot has that name.
		w.must(os.WriteFile(filepath.Join(second, old+"@v.snapshot"), nil, 0o600))
	}
	end()
	end = w.beside(first)
	defer end()
	_, err = w.driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
	w.must(err)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file of the deleted snapshot remains: %v", err)
	}
	w.wants("restore", w.create(ctx, "c", ofSnapshot(id)), codes.NotFound)
	put()
	_, err = w.driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: old})
	w.must(err)
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the file of a snapshot that was deleted by its old id remains: %v", err)
	}
}

func (w *world) clone(of string) error {
	_, err := w.driver.CreateVolume(context.Background(), &csi.CreateVolumeRequest{
		Name: "c", VolumeCapabilities: []*csi.VolumeCapability{capability}, VolumeContentSource: ofVolume(of),
	})
	return err
}

// Ids of earlier drivers consist only of a name, and remain valid. The old and the new id of a
// volume name the same volume.
func TestIDsOfEarlierDrivers(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, pool.Gigabyte)
	id := w.made("v")
	if id == "v" || w.made("v") != id {
		t.Errorf("the volume's id is %q", id)
	}
	s := w.taken("s", "v")
	for _, old := range []string{"v", id} {
		res, err := w.driver.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: old})
		if err != nil || res.GetVolume().GetVolumeId() != old {
			t.Errorf("%s: %v, %v", old, res, err)
		}
		w.must(w.stage(ctx, old))
		w.must(w.unstage(ctx, old))
		list, err := w.driver.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SourceVolumeId: old})
		if err != nil || len(list.GetEntries()) != 1 || list.GetEntries()[0].GetSnapshot().GetSourceVolumeId() != old {
			t.Errorf("%s: snapshots are %v, %v", old, list, err)
		}
	}
	for _, old := range []string{pool.SnapshotName("s"), s} {
		res, err := w.driver.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: old})
		if err != nil || res.GetSnapshot().GetSnapshotId() != s || res.GetSnapshot().GetSourceVolumeId() != id {
			t.Errorf("%s: %v, %v", old, res, err)
		}
	}
	reached, release := w.zone.Hold(pooltest.Grow)
	done := make(chan error, 1)
	w.must(w.stage(ctx, id))
	go func() { done <- w.expand(ctx, id) }()
	<-reached
	w.wants("by its old id", w.unstage(ctx, "v"), codes.Aborted)
	release()
	w.must(<-done)
	w.must(w.unstage(ctx, "v"))
	w.must(w.clone(id))
	w.must(w.clone("v"))
	w.must(w.create(ctx, "d", ofSnapshot(s)))
	w.must(w.delete(ctx, "v"))
	w.must(w.delete(ctx, id))
	_, err := w.driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: pool.SnapshotName("s")})
	w.must(err)
}

// If the source is in another node's zone, the error sends the claim to other nodes. If the id
// names this node's zone but the zone has no such source, the source does not exist. A node without
// a zone cannot decide this.
func TestSourceOfAnotherNode(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	of, here := pool.Identity(pool.DAX, "another node's"), pool.Identity(pool.File, "memory")
	s := pool.SnapshotName("s")
	for what, source := range map[string]func(in string) *csi.VolumeContentSource{
		"a volume": func(in string) *csi.VolumeContentSource { return ofVolume("v" + in) }, "a snapshot": func(in string) *csi.VolumeContentSource { return ofSnapshot(s + in) },
	} {
		for in, code := range map[string]codes.Code{"@" + of: codes.ResourceExhausted, "@" + here: codes.NotFound, "": codes.NotFound} {
			w.wants(what+in, w.create(context.Background(), "c", source(in)), code)
		}
		// The error is the same if another object has that name.
		w.made("v")
		w.taken("s", "v")
		w.wants(what+" of the same name", w.create(context.Background(), "c", source("@"+of)), codes.ResourceExhausted)
		w.must(w.delete(context.Background(), "v"))
		w.must(w.deleteSnapshot(context.Background(), "s"))
		none := driver.New(request.Config{Name: "stargate.csi.dev", NodeID: "n2", DefaultSize: 32 * mib}, pool.Nothing{}, nil, nil, nil)
		for _, in := range []string{"@" + of, ""} {
			_, err := none.CreateVolume(context.Background(), &csi.CreateVolumeRequest{
				Name: "c", VolumeCapabilities: []*csi.VolumeCapability{capability}, VolumeContentSource: source(in),
			})
			w.wants(what+in+" on a node without a zone", err, codes.ResourceExhausted)
		}
		w.another(here, of)
		w.wants(what+" of a zone that is gone", w.create(context.Background(), "c", source("@"+of)), codes.NotFound)
		w = newWorld(t, pool.Gigabyte)
	}
}

// A snapshot's topology is its node. The driver refuses a snapshot that is requested for another
// node.
func TestTopologyOfSnapshots(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, pool.Gigabyte)
	w.made("v")
	at := func(node string) *csi.Topology {
		return &csi.Topology{Segments: map[string]string{request.Config{Name: "stargate.csi.dev"}.TopologyKey(): node}}
	}
	request := func(node string) *csi.CreateSnapshotRequest {
		return &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v", AccessibilityRequirements: &csi.TopologyRequirement{Requisite: []*csi.Topology{at(node)}}}
	}
	_, err := w.driver.CreateSnapshot(ctx, request("n2"))
	w.wants("wanted elsewhere", err, codes.ResourceExhausted, "snapshot")
	made, err := w.driver.CreateSnapshot(ctx, request("n1"))
	w.must(err)
	got, err := w.driver.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: made.GetSnapshot().GetSnapshotId()})
	w.must(err)
	list, err := w.driver.ListSnapshots(ctx, &csi.ListSnapshotsRequest{})
	w.must(err)
	for what, s := range map[string]*csi.Snapshot{"made": made.GetSnapshot(), "found": got.GetSnapshot(), "listed": list.GetEntries()[0].GetSnapshot()} {
		if all := s.GetAccessibleTopology(); len(all) != 1 || !proto.Equal(all[0], at("n1")) {
			t.Errorf("%s: the snapshot's topology is %v", what, all)
		}
	}
	res, err := w.driver.GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
	w.must(err)
	if !slices.ContainsFunc(res.GetCapabilities(), func(c *csi.PluginCapability) bool {
		return c.GetService().GetType() == csi.PluginCapability_Service_SNAPSHOT_ACCESSIBILITY_CONSTRAINTS
	}) {
		t.Error("the driver does not declare SNAPSHOT_ACCESSIBILITY_CONSTRAINTS")
	}
}
