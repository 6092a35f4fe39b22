// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"path/filepath"
	"testing"

	"stargate/csi-driver/internal/sanity"
)

// This test runs all of csi-sanity on a real zone. internal/csi/driver runs it on a simulated zone.
func TestSanity(t *testing.T) {
	n := newNode(t, 2*gib, "1g")
	n.start()
	n.sanity()
}

func (n *node) sanity() {
	t := n.t
	t.Helper()
	sanity.Run(t, n.config.Endpoint, n.kubelet)
	if files := n.left(); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
	if shown := n.shown(); len(shown) > 0 {
		t.Errorf("left mounted: %v", shown)
	}
	if _, err := os.Stat(filepath.Join(n.dir, "csi.sock")); err != nil {
		t.Error(err)
	}
}
