// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"stargate/e2e/internal/wire"
)

// The rig quotes commas in the paths of folders.
func TestPathsWithCommas(t *testing.T) {
	spec := Spec{Name: "g1", Disks: Disks{Root: "/a,b/root"}}
	args := strings.Join(spec.args(QEMU{"/q"}, "", here("/c,d e/console")), "\n")
	for _, want := range []string{"path=/c,,d e/console\n", "file=/a,,b/root\n"} {
		if !strings.Contains(args, want) {
			t.Errorf("the arguments lack %q:\n%s", want, args)
		}
	}
}

// The connection of the i-th daemon has the descriptor fdShares + i. A daemon needs a guest whose
// memory it can map.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		kinds []string
		want  []string
		not   string
	}{
		{[]string{"9p"}, []string{"local,id=rig-9p,path=/d/9p,"}, "memory-backend"},
		{[]string{"virtiofs", "9p", "virtiofs-auto"}, []string{"memory-backend=ram", "memory-backend-memfd,id=ram,size=512M,share=on",
			fmt.Sprintf("socket,id=rig-virtiofs,fd=%d\n", fdShares), fmt.Sprintf("socket,id=rig-virtiofs-auto,fd=%d\n", fdShares+1)}, "?"},
	} {
		spec := Spec{Name: "g1", MemoryMiB: 512}
		for _, kind := range c.kinds {
			spec.Shares = append(spec.Shares, Share{kind, "/d/" + kind})
		}
		args := strings.Join(spec.args(QEMU{"/q"}, "", here("/console")), "\n")
		for _, want := range c.want {
			if !strings.Contains(args, want) {
				t.Errorf("%v: the arguments lack %q:\n%s", c.kinds, want, args)
			}
		}
		if strings.Contains(args, c.not) {
			t.Errorf("%v: %q in\n%s", c.kinds, c.not, args)
		}
	}
}

// A device has one vector for each system that the exchange connects, as the exchange demands.
func TestBells(t *testing.T) {
	args := strings.Join(Spec{Name: "g1", Bells: "/run/a,b"}.args(QEMU{"/q"}, "", here("/console")), "\n")
	for _, want := range []string{"socket,id=bells,path=/run/a,,b\n", fmt.Sprintf("ivshmem-doorbell,chardev=bells,vectors=%d", BellPeers)} {
		if !strings.Contains(args, want) {
			t.Errorf("no %q in\n%s", want, args)
		}
	}
	if args := strings.Join((Spec{Name: "g1"}).args(QEMU{"/q"}, "", here("/console")), "\n"); strings.Contains(args, "ivshmem") {
		t.Errorf("a doorbell without --bells:\n%s", args)
	}
}

// With --net, the guests of one run share one Ethernet, each with its own address. Without --net,
// guests have no network.
func TestNet(t *testing.T) {
	args := func(run, guest string) string {
		return strings.Join(Spec{Name: guest, Net: &Net{Run: run}}.args(QEMU{"/q"}, "", here("/console")), "\n")
	}
	group := func(args string) string {
		_, rest, _ := strings.Cut(args, "mcast=")
		group, _, _ := strings.Cut(rest, ",")
		return group
	}
	one, two, other := args("run", "g1"), args("run", "g12"), args("another", "g1")
	if group(one) == "" || group(one) != group(two) || group(one) == group(other) {
		t.Errorf("groups %q, %q, of another run %q", group(one), group(two), group(other))
	}
	if !strings.Contains(one, "mac=52:54:00:73:67:01,") || !strings.Contains(two, "mac=52:54:00:73:67:0c,") {
		t.Errorf("addresses in\n%s\n%s", one, two)
	}
	if none := (Spec{Name: "g1"}).args(QEMU{"/q"}, "", here("/console")); strings.Contains(strings.Join(none, " "), "net") {
		t.Errorf("a guest without --net has a network: %v", none)
	}
}

// A node of a cluster is on the network of its tap, and keeps the writes to one disk. QEMU discards
// writes to other disks.
func TestMember(t *testing.T) {
	net := &Net{Run: "run", Tap: "n2"}
	spec := Spec{Name: "g1", Net: net, Disks: Disks{Root: "/root", More: []string{"/more"}, Kept: "/a,b"}}
	args := strings.Join(spec.args(QEMU{"/q"}, "", here("/console")), "\n")
	for _, want := range []string{"tap,id=net,ifname=n2,script=no,downscript=no", "file=/a,,b\n", "drive=kept,serial=kept"} {
		if !strings.Contains(args, want) {
			t.Errorf("the arguments lack %q:\n%s", want, args)
		}
	}
	for _, drive := range strings.Split(args, "\n") {
		if strings.Contains(drive, "file=/") && strings.Contains(drive, "snapshot=on") == strings.Contains(drive, "id=kept") {
			t.Errorf("%s", drive)
		}
	}
	if spec.Disks.Device(0) != "/dev/vdb" || net.Address("g1") != "" {
		t.Errorf("device %s, address %q", spec.Disks.Device(0), net.Address("g1"))
	}
}

func TestShareKinds(t *testing.T) {
	if len(ShareKinds) != len(shareWays) {
		t.Errorf("%d kinds, %d ways", len(ShareKinds), len(shareWays))
	}
	for _, kind := range ShareKinds {
		if modules, fs, source, _ := (Share{Kind: kind}).MountWords(); modules == "" || fs == "" || source != "rig-"+kind {
			t.Errorf("%s: %q, %q, %q", kind, modules, fs, source)
		}
	}
}

// In a node, the disks, the range and the connections have other names. All other arguments of QEMU
// are the same as on the host.
func TestMachineInANode(t *testing.T) {
	shared := &Range{Size: 64 << 20}
	node := Node{QEMU: At("/rig/qemu"), Memory: "/mnt/sg/.stargate/region"}
	spec := Spec{Name: "g1", Accel: Accel{Name: "kvm"}, Disks: Disks{Root: "/dev/vde"}, Range: shared}
	args := strings.Join(spec.args(node.QEMU, "uuid", node.within("/run/rig/g1", "uuid")), "\n")
	for _, want := range []string{"mem-path=/mnt/sg/.stargate/region@uuid,", ",prealloc=off", "path=/dev/stdout\n", "path=/run/rig/g1.channel,server=on,wait=on\n",
		"path=/run/rig/g1.monitor,server=on,wait=on\n", "addr=0x400000000\n", "accel\nkvm\n", "file=/dev/vde\n", "/rig/qemu/usr/share/seabios\n"} {
		if !strings.Contains(args, want) {
			t.Errorf("the arguments lack %q:\n%s", want, args)
		}
	}
	if strings.Contains(args, "fd=") {
		t.Errorf("QEMU in a node gets a descriptor of the rig:\n%s", args)
	}
	spec.Words = []string{"-m", "size=64M", "-device", "nvdimm,addr=0x1"}
	args = strings.Join(spec.args(node.QEMU, "uuid", node.within("/run/rig/g1", "uuid")), "\n")
	if !strings.Contains(args, "-m\nsize=64M\n-device\nnvdimm,addr=0x1\n") || strings.Contains(args, "0x400000000") {
		t.Errorf("the words for the range do not replace the rig's own words:\n%s", args)
	}
}

// A node's clock is as fast as this host's, because kilocycles returns the counter's real
// frequency.
func TestKilocycles(t *testing.T) {
	start, first := look()
	time.Sleep(3 * cyclesFor)
	end, last := look()
	real, seconds := end.Sub(start).Seconds(), float64(last-first)/1000/float64(kilocycles())
	if seconds < real*0.99 || seconds > real*1.01 {
		t.Errorf("%.3f s by the counter, %.3f s by the clock", seconds, real)
	}
	word := fmt.Sprintf("tsc_early_khz=%d", kilocycles())
	if words := (Accel{Name: "tcg", Node: true}).kernelWords(); !slices.Contains(words, word) {
		t.Errorf("no %s among %v", word, words)
	}
}

// The node gets memory with struct pages. Guests get an NVDIMM, without struct pages.
func TestRangeOfANode(t *testing.T) {
	shared := &Range{Size: 64 << 20}
	for _, c := range []struct {
		r    *Range
		want string
	}{{shared, "rig.skip=nd_e820"}, {shared.WithPages(), "memmap=67108864!0x400000000 rig.skip=nfit"},
		{shared.WithPages().At(0x480000000), "memmap=67108864!0x480000000 rig.skip=nfit"}} {
		spec := Spec{Name: "x", Accel: Accel{Name: "tcg", Node: true}, Range: c.r}
		line := spec.commandLine()
		if !strings.Contains(line, c.want) || !strings.Contains(line, "tsc_early_khz=") {
			t.Errorf("the command line lacks %q: %s", c.want, line)
		}
	}
	if args := strings.Join(Accel{Name: "tcg", Node: true}.args(), " "); !strings.Contains(args, "+svm") {
		t.Errorf("the node's processor has no SVM: %s", args)
	}
}

// The NVDIMM has a label area only if the user requests it. Without labels, it is one namespace.
func TestLabels(t *testing.T) {
	for _, r := range []Range{{Size: 64 << 20}, {Size: 62 << 20, Labels: true}} {
		args := strings.Join(r.args("path"), " ")
		if !strings.Contains(args, "size=67108864,") || strings.HasSuffix(args, ",label-size=128K") != r.Labels {
			t.Errorf("%+v: %s", r, args)
		}
	}
}

func TestDevices(t *testing.T) {
	d := Disks{Root: "r", Payload: "p", More: []string{"x", "y"}}
	if got := d.Device(0) + " " + d.Device(1); got != "/dev/vdc /dev/vdd" {
		t.Errorf("without modules: %s", got)
	}
	d.Modules = "m"
	if got := d.Device(1); got != "/dev/vde" {
		t.Errorf("with modules: %s", got)
	}
}

func TestAccelOfANode(t *testing.T) {
	dir := t.TempDir()
	kvm, tcg := Accel{Name: "kvm"}, Accel{Name: "tcg"}
	for _, c := range []struct {
		said string // the content of KVM's parameter nested
		from Accel
		want string
	}{{"", kvm, "tcg"}, {"N", kvm, "tcg"}, {"0", kvm, "tcg"}, {"Y", kvm, "kvm"}, {"1", kvm, "kvm"}, {"Y", tcg, "tcg"}} {
		if c.said != "" {
			if err := os.WriteFile(dir+"/nested", []byte(c.said+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := c.from.forNode(dir + "/nest*"); got.Name != c.want || !got.Node {
			t.Errorf("%q, %s: %+v", c.said, c.from.Name, got)
		}
	}
}

// Only a failed assertion in QEMU's own code gives ErrAssertion. Any other end of a boot is a plain
// failure.
func TestAssertion(t *testing.T) {
	for said, want := range map[string]bool{
		"qemu-system-x86_64: system/physmem.c:2671: iotlb_to_section: Assertion `a < b' failed.\n": true,
		"qemu-system-x86_64: could not open disk image\n":                                          false,
		"program: file.c:1: main: Assertion `a' failed.\n":                                         false,
		"": false,
	} {
		ended := make(chan struct{})
		close(ended)
		g := Guest{
			Spec:    Spec{Name: "g1"},
			Link:    wire.NewLink(&bytes.Buffer{}),
			machine: machine{said: bytes.NewBufferString(said), ended: ended},
		}
		err := g.WaitReady(time.Minute)
		if err == nil || errors.Is(err, ErrAssertion) != want || !strings.Contains(err.Error(), strings.TrimSpace(said)) {
			t.Errorf("after %q: %v", said, err)
		}
	}
}
