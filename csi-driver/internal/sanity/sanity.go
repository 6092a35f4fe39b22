// SPDX-License-Identifier: Apache-2.0

// Package sanity runs all of csi-sanity against a driver. Tests use it with a driver in the test's
// process, which has a simulated zone, and with the real driver on each kind of zone.
package sanity

import (
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
)

const mib = int64(1) << 20

// notClaimed has the reasons why csi-sanity skips tests, with the number of tests: the driver does
// not support these calls.
var notClaimed = map[string]int{
	// Volumes are not attached.
	"ControllerPublishVolume not supported":             7,
	"ControllerUnpublishVolume not supported":           1,
	"Controller Publish, UnpublishVolume not supported": 2,
	// Only the size of a volume can be changed.
	"ControllerModifyVolume not supported": 6,
	"Modify Volume not supported":          1,
	"Modify volume not supported":          1,
	"GroupControllerService not supported": 6,
	// csi-sanity itself has disabled one test (kubernetes-csi/csi-test, pagination). The second
	// test is broken.
	"": 2,
}

// broken is a test that compares a message with a sent message, byte for byte. The sent message has
// its size cached, so no driver with a topology can pass (csi-test 5.6). Package csi/driver has the
// same test with proto.Equal.
const broken = "should succeed when creating a snapshot with accessibility requirements"

// names are valid for the driver, which has rules for volumes' names.
type names struct{ n int }

func (g *names) next(what string) string             { g.n++; return fmt.Sprintf("%s-%d", what, g.n) }
func (g *names) GenerateUniqueValidVolumeID() string { return g.next("volume") }
func (g *names) GenerateInvalidVolumeID() string     { return "_no/name" }
func (g *names) GenerateUniqueValidNodeID() string   { return g.next("node") }
func (g *names) GenerateInvalidNodeID() string       { return "no node" }

// leftOut returns the number of tests that csi-sanity has skipped, by reason.
func leftOut() *map[string]int {
	left := map[string]int{}
	ginkgo.ReportAfterSuite("specs that are left out", func(report ginkgo.Report) {
		for _, spec := range report.SpecReports {
			if spec.State.Is(types.SpecStateSkipped | types.SpecStatePending) {
				left[spec.Failure.Message]++
			}
		}
	})
	return &left
}

// Run tests the driver at an endpoint. A given folder replaces kubelet's folder. Run can be called
// only once in a process. It fails if csi-sanity skips a test that is not in notClaimed.
func Run(t testing.TB, endpoint, kubelet string) {
	t.Helper()
	config := sanity.NewTestConfig()
	config.Address = endpoint
	config.TargetPath, config.StagingPath = filepath.Join(kubelet, "target"), filepath.Join(kubelet, "staging")
	config.TestVolumeSize, config.TestVolumeExpandSize = 32*mib, 64*mib
	config.TestVolumeParameters = map[string]string{"alignment": "2Mi", "rootMode": "1777"}
	config.IDGen = &names{}
	left := leftOut()
	run := sanity.GinkgoTest(&config)
	gomega.RegisterFailHandler(ginkgo.Fail)
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.SkipStrings = append(suite.SkipStrings, broken)
	ginkgo.RunSpecs(t, "csi-sanity", suite, reporter)
	run.Finalize()
	if !maps.Equal(*left, notClaimed) {
		t.Errorf("the skipped tests are %v, and should be %v", *left, notClaimed)
	}
}
