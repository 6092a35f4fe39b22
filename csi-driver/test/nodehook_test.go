// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"stargate/csi-driver/internal/kubevirt/hookproto"
)

const podUID = "11111111-2222-4333-8444-555555555555"

// hooked returns a node with a volume named data, whose node hooks can be called.
func hooked(t *testing.T) (n *node, ask func(point, vmi string) error) {
	t.Helper()
	n = newNode(t, gib, "512m")
	n.config.NodeHooks = "unix://" + filepath.Join(n.dir, "hooks.sock")
	n.start()
	n.create("data", 32*mib)
	conn, err := grpc.NewClient(n.config.NodeHooks, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return n, func(point, vmi string) error {
		_, err := hookproto.Ask(background, conn, "/kubevirt.hooks.plugins.v1alpha1.NodeHookService/ExecuteNodeHook",
			hookproto.Message{}.Add(1, []byte(point)).Add(2, []byte(vmi)))
		return err
	}
}

// vmi returns a VM's object in the form that KubeVirt sends.
func vmi(t *testing.T, volumes, memory, node string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"name": "vm", "namespace": "ns", "annotations": map[string]string{"stargate.csi.dev/volumes": volumes}},
		"spec": map[string]any{"domain": map[string]any{
			"memory": map[string]string{"guest": memory}, "firmware": map[string]string{"uuid": strings.ToUpper(machineA)},
		}},
		"status": map[string]any{"activePods": map[string]string{podUID: node}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// toPod publishes the volume data at the path of the pod's claim.
func (n *node) toPod() *csi.NodePublishVolumeRequest {
	n.t.Helper()
	return n.toPodAs("data")
}

func (n *node) toPodAs(volume string) *csi.NodePublishVolumeRequest {
	n.t.Helper()
	n.stage(volume, rwx)
	r := n.publishRequest(volume, "", rwx, false)
	r.TargetPath = filepath.Join(n.kubelet, "pods", podUID, "volumes", "kubernetes.io~csi", "pvc-"+volume, "mount")
	if err := os.MkdirAll(filepath.Dir(r.TargetPath), 0o750); err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.NodePublishVolume(background, r); err != nil {
		n.t.Fatal(err)
	}
	return r
}

// The hook refuses the start of a VM that cannot have its volumes, with the reason.
func TestNodeHookStart(t *testing.T) {
	n, ask := hooked(t)
	err := ask("PreVMStart", vmi(t, "data", "1Gi", "n1"))
	wants(t, "not published", err, codes.FailedPrecondition, "ns/vm names 1 claims", "has 0 volumes")
	n.toPod()
	for _, c := range []struct {
		what, vmi string
		code      codes.Code
		words     []string
	}{
		{"all is well", vmi(t, "data", "1Gi", "n1"), codes.OK, nil},
		{"no memory said", vmi(t, "data", "", "n1"), codes.OK, nil},
		{"one is missing", vmi(t, "data,more:ro", "1Gi", "n1"), codes.FailedPrecondition, []string{"names 2 claims", "has 1 volumes"}},
		{"its pod is elsewhere", vmi(t, "data", "1Gi", "n2"), codes.FailedPrecondition, []string{"has 0 volumes"}},
		{"the VM's memory lies there", vmi(t, "data", "100Gi", "n1"), codes.FailedPrecondition, []string{"claim data lies at 64Gi", "at most 62Gi"}},
		{"no size", vmi(t, "data", "much", "n1"), codes.InvalidArgument, []string{"spec.domain.memory.guest"}},
		{"less than nothing", vmi(t, "data", "-1Gi", "n1"), codes.InvalidArgument, []string{"spec.domain.memory.guest"}},
		{"no name", vmi(t, "data,", "1Gi", "n1"), codes.InvalidArgument, []string{"ns/vm", "empty name"}},
		{"no object", "{", codes.InvalidArgument, []string{"cannot be read"}},
		{"no volumes", `{"metadata":{"name":"vm"}}`, codes.OK, nil},
		{"nothing said", `{"metadata":{"annotations":{"stargate.csi.dev/volumes":"data"}}}`, codes.FailedPrecondition, []string{"has 0 volumes"}},
	} {
		err := ask("PreVMStart", c.vmi)
		if c.code == codes.OK {
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			continue
		}
		wants(t, c.what, err, c.code, c.words...)
	}
	if err := ask("PreVMStop", vmi(t, "data,more", "1Gi", "n1")); err != nil {
		t.Errorf("a point at which the hook does nothing: %v", err)
	}
}

// When KubeVirt reports the end of a VM, the driver fences the VM on its volumes, even if its pod
// is already deleted. It does not fence live systems.
func TestNodeHookEnd(t *testing.T) {
	t.Parallel()
	n, ask := hooked(t)
	published := n.toPod()
	survivor := n.machine("data", machineB)
	for _, c := range []struct {
		point string
		gone  bool
	}{{"PreVMStart", false}, {"PostVMStop", false}, {"PostVMStop", true}} {
		vm := n.machine("data", machineA)
		vm("take 0")
		if err := ask(c.point, vmi(t, "data", "1Gi", "n1")); err != nil {
			t.Errorf("%s of a live VM: %v", c.point, err)
		}
		vm("give 0") // the system has not been fenced
		vm("take 0")
		vm("still 0")
		if c.gone {
			if _, err := n.NodeUnpublishVolume(background, &csi.NodeUnpublishVolumeRequest{VolumeId: "data", TargetPath: published.TargetPath}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // KubeVirt may repeat the report
			if err := ask(c.point, vmi(t, "data", "1Gi", "n1")); err != nil {
				t.Errorf("%s: %v", c.point, err)
			}
		}
		survivor("take 0")
		survivor("give 0")
	}
}

// A killed VM with the largest number of volumes can start again within KubeVirt's time limit,
// because the driver examines all volumes at the same time. In a second call, it does not examine
// fenced systems again.
func TestNodeHookManySilent(t *testing.T) {
	const volumes, most = 16, 15 * time.Second // a check of one volume takes at least a second
	n, ask := hooked(t)
	var names []string
	for i := range volumes {
		name := fmt.Sprintf("many-%02d", i)
		n.create(name, 16*mib)
		n.toPodAs(name)
		vm := n.machine(name, machineA)
		vm("take 0")
		vm("still 0")
		names = append(names, name)
	}
	for _, when := range []string{"silent", "dead"} {
		began := time.Now()
		if err := ask("PreVMStart", vmi(t, strings.Join(names, ","), "1Gi", "n1")); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if took := time.Since(began); took > most {
			t.Errorf("%s: it took %v", when, took)
		}
	}
	for _, name := range names {
		tell := n.machine(name, machineB)
		tell("take 0") // the dead system held this lock
	}
}
