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

	"stargate/csi-driver/internal/driver"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/present"
	"stargate/csi-driver/internal/zone"
)

// recorder notes what a volume is published with.
type recorder struct {
	present.Presenter
	machine []bool
}

func (r *recorder) Publish(_ context.Context, _ zone.Volume, _, _ string, o present.Options) error {
	r.machine = append(r.machine, o.Machine)
	return nil
}

// The cluster decides which pod is a machine's. It is not asked about pods of other names; without its answer nothing
// is published; and a driver without machines asks nobody.
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
		w := newWorld(t, zone.Gigabyte)
		staging, target := w.path("staging"), w.path("pods/u/volumes/kubernetes.io~csi/pv-1/mount")
		if err := os.MkdirAll(w.path("pods/u/volumes/kubernetes.io~csi/pv-1"), 0o755); err != nil {
			t.Fatal(err)
		}
		show, asked := &recorder{Presenter: present.NewFile(mounts.On(w.table), w.zone)}, ""
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
		if code := status.Code(driver.Status(err)); code != c.code {
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

// stagedAt has each volume staged there.
type stagedAt struct {
	*recorder
	path string
}

func (s stagedAt) Shown(zone.Volume) ([]string, error) { return []string{s.path}, nil }
