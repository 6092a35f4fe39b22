// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// notClaimed is why csi-sanity leaves tests out, and how many: of what the driver does not claim.
var notClaimed = map[string]int{
	// There is nothing to attach.
	"ControllerPublishVolume not supported":             7,
	"ControllerUnpublishVolume not supported":           1,
	"Controller Publish, UnpublishVolume not supported": 2,
	// A volume can be changed in its size only.
	"ControllerModifyVolume not supported": 6,
	"Modify Volume not supported":          1,
	"Modify volume not supported":          1,
	"GroupControllerService not supported": 6,
	// A snapshot is where its source is.
	"SNAPSHOT_ACCESSIBILITY_CONSTRAINTS not supported": 1,
	// One that csi-sanity itself has put off (kubernetes-csi/csi-test, pagination).
	"": 1,
}

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

// leftOut has, when csi-sanity has ended, how many of its tests it has left out for each reason.
func (n *node) leftOut() *map[string]int {
	left := map[string]int{}
	ginkgo.ReportAfterSuite("what is left out", func(report ginkgo.Report) {
		for _, spec := range report.SpecReports {
			if spec.State.Is(types.SpecStateSkipped | types.SpecStatePending) {
				left[spec.Failure.Message]++
			}
		}
	})
	return &left
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
	left := n.leftOut()
	sanity.Test(t, config)
	if !maps.Equal(*left, notClaimed) {
		t.Errorf("left out are %v; should be %v", *left, notClaimed)
	}
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
