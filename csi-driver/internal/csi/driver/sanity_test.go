// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"testing"

	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/sanity"
)

// This test runs all of csi-sanity in this process. csi-driver/test runs it with real tools and
// mounts.
func TestSanity(t *testing.T) {
	w := newWorld(t, 2*pool.Gigabyte)
	sanity.Run(t, w.serve(), w.kubelet)
	if left := w.left(); len(left) > 0 {
		t.Errorf("csi-sanity leaves the objects %q", left)
	}
}
