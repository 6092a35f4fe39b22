// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"

	"stargate/csi-driver/internal/pool/file"
)

// Check refuses a way to mount that does not work with the kind of zone. The error has one line
// that names an alternative.
func TestWaysToMount(t *testing.T) {
	for _, c := range []struct {
		kind, mount, keeper string
		words               string // words of the error; empty: allowed
		fuse                bool
	}{
		{"dax", "", "", "", false},
		{"dax", "auto", "unix:///k", "", false},
		{"dax", "module", "", "", false},
		{"dax", "fuse", "unix:///k", "page cache", false},
		{"dax", "none", "", "module or auto", false},
		{"file", "", "", "", false},
		{"file", "auto", "", "", false},
		{"file", "auto", "unix:///k", "", true},
		{"file", "fuse", "unix:///k", "", true},
		{"file", "fuse", "", "needs --keeper", false},
		{"file", "module", "unix:///k", "use fuse or auto", false},
		{"file", "none", "unix:///k", "", false},
		{"file", "nfs", "", "auto, module, fuse or none", false},
		{"none", "auto", "unix:///k", "", false},
	} {
		config := Config{
			Endpoint: "unix:///csi.sock", ZoneKind: c.kind, ZoneName: "sm", Mount: c.mount, Keeper: c.keeper, CallLimit: 1, StopLimit: 1,
			File: file.Config{Dir: "/dev/shm/z", Size: 1 << 30, Base: 64 << 30},
		}
		config.Driver.Name, config.Driver.NodeID, config.Driver.DefaultSize = "d.example", "n1", 1<<30
		err := config.Check()
		if (err == nil) != (c.words == "") || err != nil && (!strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s, %q, keeper %q: %v; should say %q", c.kind, c.mount, c.keeper, err, c.words)
		}
		if err == nil && config.byFUSE() != c.fuse {
			t.Errorf("%s, %q, keeper %q: by FUSE is %v", c.kind, c.mount, c.keeper, config.byFUSE())
		}
	}
}

// Data sets need the cluster, and a way to mount volumes.
func TestDatasetsNeed(t *testing.T) {
	for _, c := range []struct {
		kind, mount, keeper string
		cluster             bool
		words               string // words of the error; empty: allowed
	}{
		{"dax", "", "", true, ""},
		{"dax", "", "", false, "--datasets needs --cluster"},
		{"file", "", "unix:///k", true, ""},
		{"file", "none", "unix:///k", true, "set --keeper"},
		{"file", "", "", true, "set --keeper"},
		{"none", "", "", true, ""},
	} {
		config := Config{
			Endpoint: "unix:///csi.sock", ZoneKind: c.kind, ZoneName: "sm", Mount: c.mount, Keeper: c.keeper, CallLimit: 1, StopLimit: 1, OrphanLimit: 1,
			File: file.Config{Dir: "/dev/shm/z", Size: 1 << 30, Base: 64 << 30}, Cluster: c.cluster,
		}
		config.Datasets.Enabled, config.Datasets.Wait = true, 1
		config.Driver.Name, config.Driver.NodeID, config.Driver.DefaultSize = "d.example", "n1", 1<<30
		err := config.Check()
		if (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
