// SPDX-License-Identifier: Apache-2.0

//go:build kubevirt19

package kubevirt

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/cache"
	v1 "kubevirt.io/api/core/v1"
	pluginv1alpha1 "kubevirt.io/api/plugin/v1alpha1"
	"kubevirt.io/kubevirt/pkg/testutils"
	handlerplugins "kubevirt.io/kubevirt/pkg/virt-handler/plugins"
)

var driverProgram = flag.String("driver", "", "stargate-csi")

// handler is the part of virt-handler that calls node hooks, with the chart's Plugin object.
func handler(t *testing.T, p pluginv1alpha1.Plugin) handlerplugins.NodeHookExecutor {
	t.Helper()
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	if err := store.Add(&p); err != nil {
		t.Fatal(err)
	}
	config, _, _ := testutils.NewFakeClusterConfigUsingKVConfig(&v1.KubeVirtConfiguration{
		DeveloperConfiguration: &v1.DeveloperConfiguration{FeatureGates: []string{"Plugins"}},
	})
	h, err := handlerplugins.NewNodeHookManager(store, config)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestNodeHooks checks that virt-handler, the chart's Plugin and the driver work together. Package
// csi-driver/test tests the driver's work on volumes.
func TestNodeHooks(t *testing.T) {
	p := thePlugin(t)
	points := map[pluginv1alpha1.NodeHookPoint]pluginv1alpha1.NodeHook{}
	for _, h := range p.Spec.NodeHooks {
		for _, point := range h.PermittedHooks {
			points[point] = h
		}
	}
	if len(points) != 2 || points["PreVMStart"].FailureStrategy != "Fail" || points["PostVMStop"].FailureStrategy != "Ignore" {
		t.Fatalf("the plugin has unexpected node hooks: %+v", p.Spec.NodeHooks)
	}
	h, vmi, other := handler(t, p), machines(t)["minimal"], machines(t)["minimal"]
	other.Annotations = nil
	ask := func(point pluginv1alpha1.NodeHookPoint, vmi *v1.VirtualMachineInstance) string {
		if err := h.CallNodeHooks(point, vmi, "n1"); err != nil {
			return err.Error()
		}
		return ""
	}
	wants := func(when, said, words string) {
		t.Helper()
		if !strings.Contains(said, words) || words == "" && said != "" {
			t.Errorf("%s: %q, and not %q", when, said, words)
		}
	}
	wants("no driver", ask("PreVMStart", vmi), "failed to dial")
	wants("no driver runs, and the VM has ended", ask("PostVMStop", vmi), "")
	wants("no driver, and no volumes", ask("PreVMStart", other), "")
	dir := t.TempDir()
	startProgram(t, *driverProgram, points["PreVMStart"].Socket, "--node-hooks", "unix://"+points["PreVMStart"].Socket, "--node", "n1",
		"--zone-kind", "none", "--kubelet-dir", dir, "--endpoint", "unix://"+filepath.Join(dir, "csi.sock"))
	wants("no volumes on this node", ask("PreVMStart", vmi), "FailedPrecondition: VM default/minimal names")
	wants("it has ended", ask("PostVMStop", vmi), "")
	wants("a VM without", ask("PreVMStart", other), "")
}
