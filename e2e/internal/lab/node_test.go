// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"reflect"
	"strings"
	"testing"

	"stargate/e2e/internal/kernel"
	"stargate/e2e/internal/vm"
)

func testLab() *Lab {
	a := &Assets{root: "ROOT", systems: []system{
		{Kernel: kernel.Kernel{Image: "K0"}, modules: "M0"},
		{Kernel: kernel.Kernel{Image: "K1"}}, // built in
		{Kernel: kernel.Kernel{Image: "K2"}, modules: "M2"},
	}}
	a.node = nodeAssets{system: system{modules: "MN"}, qemu: "QEMU", boots: []string{"B0", "B1", "B2"}}
	return New(a, Options{Guests: 4, Node: true, MemoryMiB: 384, Payload: "PAYLOAD"}, &vm.Range{Size: 32 << 20}, "/run")
}

// A guest's disks are devices of the node. The order of the node's disks gives their letters.
func TestDevicesInTheNode(t *testing.T) {
	l := testLab()
	disks := l.hostSpec().Disks
	all := append([]string{disks.Root, disks.Payload, disks.Modules}, disks.More...)
	at := func(device string) string {
		if device == "" {
			return ""
		}
		return all[device[len(device)-1]-'a']
	}
	d := l.nodeDevices()
	got := []string{at(d.qemu), at(d.root)}
	for i := range d.boots {
		got = append(got, at(d.boots[i]), at(d.modules[i]))
	}
	if text := strings.Join(got, " "); text != "QEMU ROOT B0 M0 B1  B2 M2" {
		t.Errorf("got %s of %v", text, all)
	}
}

func TestSystems(t *testing.T) {
	l := testLab()
	if got := strings.Join(l.Systems(), " "); got != "host g1 g2 g3 g4" {
		t.Errorf("got %s", got)
	}
	if spec := l.hostSpec(); spec.CPUs != 1 || spec.MemoryMiB < 4*384 || !spec.Range.Pages || l.Range.Pages {
		t.Errorf("got %+v", spec)
	}
	if l.members["g4"].kernel != 0 || l.inNode(l.host) || !l.inNode(l.members["g1"]) {
		t.Errorf("got %+v", l.members["g4"])
	}
}

// The node is not a guest, and a guest needs its node.
func TestNodeRefuses(t *testing.T) {
	l := testLab()
	for what, err := range map[string]error{
		"start_node": l.Start("g1", Life{}), "start_node boots it": l.Start(Host, Life{}), "use kill_node": l.Kill(Host),
		"ends at the end of the run": l.Stop(Host), "not running": l.KillNode(),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("the error does not contain %q: %v", what, err)
		}
	}
	if wrong := l.Finish(""); wrong != nil {
		t.Errorf("a refused start has changed the lab: %v", wrong)
	}
	l = New(&Assets{systems: []system{{}}}, Options{Guests: 1}, nil, "/run")
	if l.KillNode() != errNoNode || l.StartNode() != errNoNode {
		t.Error("StartNode returned no error without a node")
	}
}

// startArguments accepts the arguments that a script may give to start, and no others.
func TestStartArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		life Life
		bad  bool
	}{
		{nil, Life{}, false},
		{[]string{"--no-mount"}, Life{NoMount: true}, false},
		{[]string{"--no-mount", "--at", "0x480000000"}, Life{NoMount: true, At: 0x480000000}, false},
		{[]string{"--at", "4096", "--no-mount"}, Life{NoMount: true, At: 4096}, false},
		{[]string{"--", "-m", "--no-mount"}, Life{Words: []string{"-m", "--no-mount"}}, false},
		{[]string{"--no-mount", "--", "-m"}, Life{NoMount: true, Words: []string{"-m"}}, false},
		{[]string{"--"}, Life{}, true},
		{[]string{"-m"}, Life{}, true},
		{[]string{"--at"}, Life{}, true},
		{[]string{"--at", "0"}, Life{}, true},
		{[]string{"--at", "-1"}, Life{}, true},
		{[]string{"--at", "there"}, Life{}, true},
	} {
		life, err := startArguments(c.args)
		if !reflect.DeepEqual(life, c.life) || (err != nil) != c.bad {
			t.Errorf("%q: %+v, %v", c.args, life, err)
		}
	}
	here := New(&Assets{systems: []system{{}}}, Options{Guests: 1}, nil, "/run")
	if err := here.Start("g1", Life{Words: []string{"-m"}}); err == nil || !strings.Contains(err.Error(), "in a node") {
		t.Errorf("got %v", err)
	}
}
