// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/filezone"
	"stargate/csi-driver/internal/tools"
	"stargate/csi-driver/internal/zone"
	"stargate/csi-driver/internal/zone/zonetest"
)

// What the driver's tests take for a zone (package zonetest) is held to the same as a real one, with its tools.
func TestContract(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	programs, err := tools.New(toolsDir(t))
	if err != nil {
		t.Fatal(err)
	}
	zonetest.Contract(t, func(t *testing.T) zone.Zone {
		dir := t.TempDir()
		if err := unix.Mount("zone", dir, "tmpfs", 0, "size=1g"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		z, err := filezone.Open(background, filezone.Config{Dir: dir, Base: 64 * gib, Size: zonetest.ContractSize, Group: os.Getgid()}, programs)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { z.Close() })
		return z
	})
}
