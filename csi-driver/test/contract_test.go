// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/pool/file"
	"stargate/csi-driver/internal/pool/pooltest"
	"stargate/csi-driver/internal/stargatectl"
)

// A real zone with its tools fulfils the same contract as the simulated zone (package pooltest).
func TestContract(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	programs, err := stargatectl.New(toolsDir(t))
	if err != nil {
		t.Fatal(err)
	}
	pooltest.Contract(t, func(t *testing.T) pool.Zone {
		dir := t.TempDir()
		if err := unix.Mount("zone", dir, "tmpfs", 0, "size=1g"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		z, err := file.Open(background, file.Config{Dir: dir, Base: 64 * gib, Size: pooltest.ContractSize, Group: os.Getgid()}, programs)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { z.Close() })
		return z
	})
}
