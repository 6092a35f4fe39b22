// SPDX-License-Identifier: Apache-2.0

package test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// While other systems of a volume do not answer, changes that need their answers fail with Aborted.
// When the systems answer, the changes succeed.
func TestSystemDoesNotAnswer(t *testing.T) {
	t.Parallel()
	n := newNode(t, gib, "512m")
	n.start()
	n.create("v", 32*mib)
	tell := n.machine("v", machineA)
	snapshot := &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v"}
	larger := &csi.ControllerExpandVolumeRequest{VolumeId: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 48 * mib}}
	tell("still 0")
	_, err := n.ControllerExpandVolume(background, larger)
	wants(t, "expand", err, codes.Aborted, "slot", "does not answer")
	_, err = n.CreateSnapshot(background, snapshot)
	wants(t, "snapshot", err, codes.Aborted, "slot", "does not freeze")
	tell("go 0")
	_, err = n.ControllerExpandVolume(background, larger)
	wants(t, "a growth that the machine cannot follow", err, codes.FailedPrecondition, "uses the volume")
	if _, err := n.CreateSnapshot(background, snapshot); err != nil {
		t.Error(err)
	}
	if left := n.left(); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}

// If a system does not answer and no longer has the file open, it was killed. Changes do not wait
// for such a system.
func TestKilled(t *testing.T) {
	t.Parallel()
	n := newNode(t, gib, "512m")
	n.start()
	n.create("v", 32*mib)
	snapshot := func() error {
		_, err := n.CreateSnapshot(background, &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v"})
		return err
	}
	larger := func() error {
		_, err := n.ControllerExpandVolume(background, &csi.ControllerExpandVolumeRequest{
			VolumeId: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 48 * mib},
		})
		return err
	}
	for _, c := range []struct {
		what string
		call func() error
	}{{"expand", larger}, {"snapshot", snapshot}} {
		tell, kill := n.mortal("v", machineA)
		tell("still 0")
		wants(t, c.what+" beside a stopped system", c.call(), codes.Aborted, "slot")
		kill()
		if err := c.call(); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	n.sound("v")
}
