// SPDX-License-Identifier: Apache-2.0

package request

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

func TestSizes(t *testing.T) {
	const m = int64(1) << 20
	for _, c := range []struct {
		least, most, want int64
		kind              errkind.Kind
	}{
		{0, 0, 1 << 30, 0}, {1, 0, 16 * m, 0}, {16 * m, 0, 16 * m, 0}, {16*m + 1, 0, 18 * m, 0},
		{0, 20*m + 1, 20 * m, 0}, {0, 16 * m, 16 * m, 0}, {17 * m, 18 * m, 18 * m, 0},
		{pool.MaxVolume, 0, pool.MaxVolume, 0},
		{-1, 0, 0, errkind.Invalid}, {0, -1, 0, errkind.Invalid}, {2, 1, 0, errkind.Invalid},
		{0, 16*m - 1, 0, errkind.OutOfRange}, {17 * m, 17 * m, 0, errkind.OutOfRange}, {pool.MaxVolume + 1, 0, 0, errkind.OutOfRange},
	} {
		n, err := Size(&csi.CapacityRange{RequiredBytes: c.least, LimitBytes: c.most}, 1<<30)
		if n != c.want || (err != nil) != (c.kind != 0) || err != nil && !errkind.Is(err, c.kind) {
			t.Errorf("%d to %d: %d, %v", c.least, c.most, n, err)
		}
	}
}

func TestParameters(t *testing.T) {
	s, err := parse(parameters, map[string]string{
		"alignment": "1Gi", "hostMode": "splice", "label": "my volume", "maxSize": "1Ti", "reserve": "64Mi", "rootMode": "1777", "rootOwner": "1000:107",
		"lease": "30", "dataMode": "atomic", "csi.storage.k8s.io/pvc/name": "data",
	})
	want := Settings{pool.Gigabyte, "my volume", 1 << 40, 64 << 20, "1777", "1000:107", "30", "splice", "atomic", 0, pool.InZone}
	if err != nil || s != want {
		t.Errorf("%+v, %v", s, err)
	}
	for key, values := range map[string][]string{
		"alignment": {"", "2M", "2mi"}, "hostMode": {"", "dax"}, "label": {"", "a\nb", "\xff", string(make([]byte, 64))},
		"maxSize": {"", "-1", "0", "1Mi", "17Mi", "65Ti", "1e99", "lots"}, "rootMode": {"", "77", "0778", "rwx", "07777"},
		"reserve": {"", "0", "-2Mi", "3Mi", "65Ti", "some"}, "rootOwner": {"", "root", "0:", ":0", "0:0:0", "-1:0", "4294967295:0", "0:4294967295", "0:18446744073709551616"}, "lease": {"", "1", "0", "86401", "1s", "Never"}, "dataMode": {"", "ordered"},
		"Alignment": {"2Mi"}, "size": {"1Gi"}, "": {""},
	} {
		for _, v := range values {
			if _, err := parse(parameters, map[string]string{key: v}); !errkind.Is(err, errkind.Invalid) {
				t.Errorf("%s=%q: %v", key, v, err)
			}
		}
	}
}

func TestMountOptions(t *testing.T) {
	for option, allowed := range map[string]bool{
		"noatime": true, "noatime,map=walk": true, "context=system_u:object_r:container_file_t:s0": true,
		"": false, "data=journal": false, "noatime,data=journal": false, "context=": false,
		"context=system_u:object_r:container_file_t:s0:c1,c2": false, "context=a:b:c:s0,phys=1": false,
		"context=system_u:object_r:container_file_t:s0:c1": false, "context=a:b:c:s0 suid": false,
		"context=:b:c:s0": false, "context=a b:b:c:s0": false, "context=a:b:c:d:s0": false, "xcontext=a:b:c:s0": false,
		"fscontext=system_u:object_r:container_file_t:s0": false,
	} {
		err := Check(&csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: []string{option}}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		})
		if (err == nil) != allowed {
			t.Errorf("%q: %v", option, err)
		}
	}
}

// A class cannot set the mount option for VMs' pods. A class can make the node follow VMs' tables
// only if the node allows this.
func TestMountOptionsOfTheNode(t *testing.T) {
	for _, c := range []struct {
		flags   string
		context map[string]string
		allows  bool // this node allows splice
		want    string
		kind    errkind.Kind
	}{
		{"nodiratime", nil, false, "", 0},
		{"noatime,nodiratime,rw,nosuid,nodev", nil, false, "noatime", 0},
		{"map=splice", nil, true, "map=splice", 0},
		{"map=splice", nil, false, "", errkind.InUse},
		{"noatime", map[string]string{"hostMode": "splice"}, true, "noatime,map=splice", 0},
		{"noatime", map[string]string{"hostMode": "splice"}, false, "", errkind.InUse},
		{"noatime", map[string]string{"hostMode": "walk,suid"}, false, "", errkind.Invalid},
	} {
		o, err := Config{AllowHostSplice: c.allows}.MountOptions(&csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: []string{c.flags}}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}, c.context)
		if c.kind != 0 {
			if !errkind.Is(err, c.kind) {
				t.Errorf("%s, %v: %v", c.flags, c.context, err)
			}
			continue
		}
		if got := strings.Join(o.Flags, ","); err != nil || got != c.want || o.Setuid || o.Devices || o.Machine {
			t.Errorf("%s, %v: %+v, %v", c.flags, c.context, o, err)
		}
	}
}
