// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
)

// names are valid for the driver, which has rules for volumes' names.
type names struct{ n int }

func (g *names) next(what string) string             { g.n++; return fmt.Sprintf("%s-%d", what, g.n) }
func (g *names) GenerateUniqueValidVolumeID() string { return g.next("volume") }
func (g *names) GenerateInvalidVolumeID() string     { return "_no/name" }
func (g *names) GenerateUniqueValidNodeID() string   { return g.next("node") }
func (g *names) GenerateInvalidNodeID() string       { return "no node" }

// csi-sanity in full: what is skipped is what the driver does not claim.
func TestSanity(t *testing.T) {
	n := newNode(t, 2*gib, "1g")
	n.start()
	n.sanity()
}

func (n *node) sanity() {
	t := n.t
	t.Helper()
	config := sanity.NewTestConfig()
	config.Address = n.config.Endpoint
	config.TargetPath, config.StagingPath = filepath.Join(n.kubelet, "target"), filepath.Join(n.kubelet, "staging")
	config.TestVolumeSize, config.TestVolumeExpandSize = 32*mib, 64*mib
	config.TestVolumeParameters = map[string]string{"alignment": "2Mi", "rootMode": "1777"}
	config.IDGen = &names{}
	sanity.Test(t, config)
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
