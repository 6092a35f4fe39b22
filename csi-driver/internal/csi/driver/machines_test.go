// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
)

// recorder records the options of each published volume.
type recorder struct {
	publish.Presenter
	machine []bool
}

func (r *recorder) Publish(_ context.Context, _ pool.Volume, _, _ string, o publish.Options) error {
	r.machine = append(r.machine, o.Machine)
	return nil
}

// The cluster decides which pod belongs to a VM. The driver queries the cluster only about pods
// whose names begin like those of VMs' pods. Without an answer, the driver does not publish the
// volume. A driver without VMs never queries the cluster.
func TestMachinesPods(t *testing.T) {
	for _, c := range []struct {
		what, pod string
		served    bool
		is        bool
		err       error
		asked     bool
		code      codes.Code
		machine   bool
	}{
		{"a machine's", "virt-launcher-vm-x", true, true, nil, true, codes.OK, true},
		{"one of that name", "virt-launcher-vm-x", true, false, nil, true, codes.OK, false},
		{"another one", "web", true, true, nil, false, codes.OK, false},
		{"no answer", "virt-launcher-vm-x", true, false, errors.New("no answer"), true, codes.Unavailable, false},
		{"no machines", "virt-launcher-vm-x", false, true, nil, false, codes.OK, false},
	} {
		w := newWorld(t, pool.Gigabyte)
		staging, target := w.path("staging"), w.path("pods/u/volumes/kubernetes.io~csi/pv-1/mount")
		if err := os.MkdirAll(w.path("pods/u/volumes/kubernetes.io~csi/pv-1"), 0o755); err != nil {
			t.Fatal(err)
		}
		show, asked := &recorder{Presenter: publish.NewFile(mounts.On(w.table), w.zone)}, ""
		d := w.with(stagedAt{show, staging})
		if c.served {
			d.ServeMachines(func(_ context.Context, namespace, pod, uid, pv string) (bool, error) {
				asked = fmt.Sprint(namespace, "/", pod, " ", uid, " ", pv)
				return c.is, c.err
			})
		}
		capability := &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
		}
		_, err := d.CreateVolume(context.Background(), &csi.CreateVolumeRequest{
			Name: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 32 * mib}, VolumeCapabilities: []*csi.VolumeCapability{capability},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.NodePublishVolume(context.Background(), &csi.NodePublishVolumeRequest{
			VolumeId: "v", StagingTargetPath: staging, TargetPath: target, VolumeCapability: capability,
			VolumeContext: map[string]string{
				"csi.storage.k8s.io/pod.name": c.pod, "csi.storage.k8s.io/pod.namespace": "ns", "csi.storage.k8s.io/pod.uid": "u",
			},
		})
		if code := status.Code(grpcstatus.Of(err)); code != c.code {
			t.Errorf("%s: %s, %v", c.what, code, err)
		}
		if want := "ns/" + c.pod + " u pv-1"; (asked == want) != c.asked || asked != "" && asked != want {
			t.Errorf("%s: asked about %q", c.what, asked)
		}
		if got := len(show.machine) == 1 && show.machine[0]; got != c.machine || (len(show.machine) == 1) != (c.code == codes.OK) {
			t.Errorf("%s: published with %v", c.what, show.machine)
		}
	}
}

// Only one VM at a time can have a ReadWriteOnce volume. Another VM gets the volume when the first
// VM's pod has released it. A pod without a VM can have the volume at the same time. Several VMs
// can share a ReadWriteMany volume.
func TestOneMachine(t *testing.T) {
	const once, many = csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER, csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	for _, c := range []struct {
		mode   csi.VolumeCapability_AccessMode_Mode
		second codes.Code
	}{{once, codes.FailedPrecondition}, {csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, codes.FailedPrecondition}, {many, codes.OK}} {
		w, ctx := newWorld(t, pool.Gigabyte), context.Background()
		w.driver.ServeMachines(func(context.Context, string, string, string, string) (bool, error) { return true, nil })
		capability := &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: c.mode},
		}
		_, err := w.driver.CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 32 * mib}, VolumeCapabilities: []*csi.VolumeCapability{capability},
		})
		if err == nil {
			_, err = w.driver.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
				VolumeId: "v", StagingTargetPath: w.path("staging"), VolumeCapability: capability,
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		publish := func(pod string, want codes.Code) {
			t.Helper()
			_, err := w.driver.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
				VolumeId: "v", StagingTargetPath: w.path("staging"), TargetPath: w.path(pod), VolumeCapability: capability,
				VolumeContext: map[string]string{"csi.storage.k8s.io/pod.name": pod},
			})
			if code := status.Code(grpcstatus.Of(err)); code != want {
				t.Errorf("%s: %s: %s, %v", c.mode, pod, code, err)
			}
		}
		publish("web", codes.OK)
		publish("virt-launcher-one", codes.OK)
		publish("virt-launcher-one", codes.OK)
		publish("virt-launcher-two", c.second)
		publish("other", codes.OK)
		if _, err := w.driver.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: w.path("virt-launcher-one")}); err != nil {
			t.Fatal(err)
		}
		publish("virt-launcher-two", codes.OK)
	}
}

// capable returns a capability with an access mode.
func capable(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
}

// A ReadWriteOncePod volume is published at only one path. The driver refuses to publish a volume
// that is not staged, and to delete a volume that is still mounted at a path.
func TestOnePod(t *testing.T) {
	w, ctx, capability := newWorld(t, pool.Gigabyte), context.Background(), capable(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)
	_, err := w.driver.CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name: "v", CapacityRange: &csi.CapacityRange{RequiredBytes: 32 * mib}, VolumeCapabilities: []*csi.VolumeCapability{capability},
	})
	if err != nil {
		t.Fatal(err)
	}
	staging := w.path("staging")
	told := func(what string, want codes.Code, err error) {
		t.Helper()
		if code := status.Code(grpcstatus.Of(err)); code != want {
			t.Errorf("%s: %s, %v", what, code, err)
		}
	}
	publish := func(pod string) error {
		_, err := w.driver.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: "v", StagingTargetPath: staging, TargetPath: w.path(pod), VolumeCapability: capability})
		return err
	}
	unpublish := func(pod string) error {
		_, err := w.driver.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: w.path(pod)})
		return err
	}
	remove := func() error {
		_, err := w.driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "v"})
		return err
	}
	told("published before it is staged", codes.FailedPrecondition, publish("one"))
	_, err = w.driver.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: "v", StagingTargetPath: staging, VolumeCapability: capability})
	told("staged", codes.OK, err)
	told("published", codes.OK, publish("one"))
	told("published again", codes.OK, publish("one"))
	told("published for another pod", codes.FailedPrecondition, publish("two"))
	told("deleted while a pod has it", codes.FailedPrecondition, remove())
	told("unpublished", codes.OK, unpublish("one"))
	told("published for the other pod", codes.OK, publish("two"))
	told("unpublished there", codes.OK, unpublish("two"))
	told("deleted while it is staged", codes.FailedPrecondition, remove())
	_, err = w.driver.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: "v", StagingTargetPath: staging})
	told("unstaged", codes.OK, err)
	told("deleted", codes.OK, remove())
}

// stagedAt reports that each volume is staged at a given path.
type stagedAt struct {
	*recorder
	path string
}

func (s stagedAt) Shown(pool.Volume) ([]string, error) { return []string{s.path}, nil }
