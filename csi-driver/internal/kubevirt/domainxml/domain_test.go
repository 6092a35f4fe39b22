// SPDX-License-Identifier: Apache-2.0

package domainxml

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"libvirt.org/go/libvirtxml"

	"stargate/csi-driver/internal/kubevirt/volumeinfo"
)

var intel = Host{Bits: 46, Intel: true}

// Domains that each version of KubeVirt creates from its own list of VMs. mk/test/kubevirt stores
// them here.
func stored(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/kubevirt-*/*.xml")
	if err != nil || len(files) < 60 {
		t.Fatalf("domains: %d, %v", len(files), err)
	}
	all := map[string][]byte{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(path, "testdata/")] = text
	}
	return all
}

func at(claim string, base, size uint64) volumeinfo.Volume {
	return volumeinfo.Volume{Claim: claim, Path: "/var/run/stargate/" + claim + "/.stargate/region", Base: base, Size: size}
}

// small returns a minimal domain after edit has changed it.
func small(edit func(d *libvirtxml.Domain)) []byte {
	d := &libvirtxml.Domain{
		Type: "kvm", UUID: "0b5e55ed-0000-4000-8000-00000000beef", Memory: &libvirtxml.DomainMemory{Value: 1, Unit: "GiB"},
		OS:  &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{Arch: "x86_64", Machine: "pc-q35-rhel9.6.0", Type: "hvm"}},
		CPU: &libvirtxml.DomainCPU{Mode: "host-passthrough"}, VCPU: &libvirtxml.DomainVCPU{Value: 4},
	}
	if edit != nil {
		edit(d)
	}
	text, err := d.Marshal()
	if err != nil {
		panic(err)
	}
	return []byte(text)
}

func parsed(t *testing.T, text []byte) *libvirtxml.Domain {
	t.Helper()
	d := &libvirtxml.Domain{}
	if err := d.Unmarshal(string(text)); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAttach(t *testing.T) {
	a, b := at("a", 128*gibibyte, 64*mebibyte), at("b", 64*gibibyte, 32*mebibyte)
	a.ByMachine = true
	out, err := Attach(small(nil), []volumeinfo.Volume{a, b}, intel)
	if err != nil {
		t.Fatal(err)
	}
	d := parsed(t, out)
	if m := d.MaximumMemory; m.Slots != 2 || m.Unit != "KiB" || uint64(m.Value)<<10 != gibibyte+124*gibibyte+64*mebibyte {
		t.Errorf("maxMemory: %+v", m)
	}
	if c := d.CPU.Numa.Cell; len(c) != 1 || c[0].CPUs != "0-3" || c[0].Memory != 1<<20 || c[0].Unit != "KiB" {
		t.Errorf("the NUMA cells are %+v", c)
	}
	for i, want := range []struct {
		path string
		v    volumeinfo.Volume
	}{{b.Path, b}, {a.Path + "@0b5e55ed-0000-4000-8000-00000000beef", a}} {
		m := d.Devices.Memorydevs[i]
		if m.Access != "shared" || m.Source.Path != want.path || *m.Address.DIMM.Base != want.v.Base || *m.Address.DIMM.Slot != uint(i) ||
			uint64(m.Target.Size.Value)<<10 != want.v.Size || m.Source.AlignSize.Value != 2048 || m.Target.ReadOnly != nil {
			t.Errorf("device %d: %+v", i, m)
		}
	}
	if again, err := Attach(out, []volumeinfo.Volume{a, b}, intel); err != nil || !bytes.Equal(again, out) {
		t.Errorf("again: %v\n%s", err, again)
	}
	if less, err := Attach(out, []volumeinfo.Volume{b}, intel); err != nil || len(parsed(t, less).Devices.Memorydevs) != 1 {
		t.Errorf("with one volume less: %v\n%s", err, less)
	}
}

// libvirt accepts a UUID without hyphens. The node knows a VM only by the canonical form.
func TestAttachUUID(t *testing.T) {
	const id = "0b5e55ed-0000-4000-8000-00000000beef"
	for said, want := range map[string]string{id: "@" + id, strings.ToUpper(id): "@" + id, strings.ReplaceAll(id, "-", ""): "@" + id, "": ""} {
		for _, bad := range []bool{false, true} {
			v := at("a", 64*gibibyte, 32*mebibyte)
			v.ByMachine, v.Bad = true, bad
			out, err := Attach(small(func(d *libvirtxml.Domain) { d.UUID = said }), []volumeinfo.Volume{v}, intel)
			if err != nil || !strings.Contains(string(out), v.Path+want) || (want == "") == strings.Contains(string(out), v.Path+"@") {
				t.Errorf("%q, bad %v: %v\n%s", said, bad, err, out)
			}
		}
	}
}

func TestAttachReadOnly(t *testing.T) {
	a, b := at("a", 64*gibibyte, 32*mebibyte), at("b", 128*gibibyte, 32*mebibyte)
	a.ReadOnly = true
	in := small(func(d *libvirtxml.Domain) {
		d.QEMUCommandline = &libvirtxml.DomainQEMUCommandline{Args: []libvirtxml.DomainQEMUCommandlineArg{{Value: "-fw_cfg"}, {Value: "name=x"}}}
	})
	out, err := Attach(in, []volumeinfo.Volume{a, b}, intel)
	if err != nil {
		t.Fatal(err)
	}
	d := parsed(t, out)
	var args []string
	for _, a := range d.QEMUCommandline.Args {
		args = append(args, a.Value)
	}
	const want = "-fw_cfg name=x -machine nvdimm=on " +
		"-object memory-backend-file,id=stargate-mem-0,mem-path=/var/run/stargate/a/.stargate/region,size=33554432,align=2097152,share=on,prealloc=off,readonly=on " +
		"-device nvdimm,id=stargate-nv-0,memdev=stargate-mem-0,slot=0,addr=0x1000000000,node=0,unarmed=on"
	if got := strings.Join(args, " "); got != want {
		t.Errorf("arguments: %s", got)
	}
	if len(d.Devices.Memorydevs) != 1 || *d.Devices.Memorydevs[0].Address.DIMM.Slot != 1 {
		t.Errorf("devices: %+v", d.Devices.Memorydevs)
	}
	if again, err := Attach(out, []volumeinfo.Volume{a, b}, intel); err != nil || !bytes.Equal(again, out) {
		t.Errorf("again: %v\n%s", err, again)
	}
	a.ReadOnly = false
	if d := parsed(t, must(t, out, a, b)); len(d.QEMUCommandline.Args) != 2 || len(d.Devices.Memorydevs) != 2 {
		t.Errorf("no longer read-only: %+v", d.QEMUCommandline)
	}
}

// TestAttachBad checks that QEMU does not allocate a volume with bad pages in advance, and that the
// VM can write to it. The volume's device in the VM stays the same when a page becomes bad or good
// again.
func TestAttachBad(t *testing.T) {
	bad, good := at("bad", 64*gibibyte, 32*mebibyte), at("good", 128*gibibyte, 32*mebibyte)
	bad.ByMachine = true
	before := must(t, small(nil), bad, good)
	bad.Bad = true
	out := must(t, before, bad, good)
	d := parsed(t, out)
	if d.QEMUCommandline == nil {
		t.Fatalf("no arguments:\n%s", out)
	}
	var args []string
	for _, a := range d.QEMUCommandline.Args {
		args = append(args, a.Value)
	}
	const want = "-machine nvdimm=on " +
		"-object memory-backend-file,id=stargate-mem-0,mem-path=/var/run/stargate/bad/.stargate/region@0b5e55ed-0000-4000-8000-00000000beef," +
		"size=33554432,align=2097152,share=on,prealloc=off " +
		"-device nvdimm,id=stargate-nv-0,memdev=stargate-mem-0,slot=0,addr=0x1000000000,node=0"
	if got := strings.Join(args, " "); got != want {
		t.Errorf("arguments: %s", got)
	}
	if m := d.Devices.Memorydevs; len(m) != 1 || *m[0].Address.DIMM.Slot != 1 || *m[0].Address.DIMM.Base != good.Base {
		t.Errorf("devices: %+v", m)
	}
	if m, was := d.MaximumMemory, parsed(t, before).MaximumMemory; *m != *was {
		t.Errorf("maxMemory: %+v, and was %+v", m, was)
	}
	if c := d.CPU.Numa; c == nil || len(c.Cell) != 1 {
		t.Errorf("the NUMA cells are %+v", c)
	}
	if again := must(t, out, bad, good); !bytes.Equal(again, out) {
		t.Errorf("again:\n%s", again)
	}
	bad.ReadOnly = true
	if d := parsed(t, must(t, out, bad, good)); !strings.HasSuffix(d.QEMUCommandline.Args[3].Value, ",readonly=on") {
		t.Errorf("read-only, too: %+v", d.QEMUCommandline)
	}
	bad.ReadOnly, bad.Bad = false, false
	if after := must(t, out, bad, good); !bytes.Equal(after, before) {
		t.Errorf("after the page is good again:\n%s\nbefore it was bad:\n%s", after, before)
	}
}

func must(t *testing.T, in []byte, volumes ...volumeinfo.Volume) []byte {
	t.Helper()
	out, err := Attach(in, volumes, intel)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestKubeVirt checks that Attach accepts domains of KubeVirt's real converter, in each version.
// Attach also accepts its own result, even if a page of the volume has become bad since then.
func TestKubeVirt(t *testing.T) {
	v := at("data", 64*gibibyte, 32*mebibyte)
	bad := v
	bad.Bad = true
	taken := 0
	for name, in := range stored(t) {
		out, err := Attach(in, []volumeinfo.Volume{v}, intel)
		refuse := strings.Contains(name, "refused-") && !strings.Contains(name, "nowhere") && !strings.Contains(name, "twice")
		if refuse != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		taken++
		if again, err := Attach(out, []volumeinfo.Volume{v}, intel); err != nil || !bytes.Equal(again, out) {
			t.Errorf("%s: again: %v", name, err)
		}
		hurt := must(t, in, bad)
		if n := bytes.Count(hurt, []byte("memory-backend-file,id="+objectID)); n != 1 || len(parsed(t, hurt).Devices.Memorydevs) != 0 {
			t.Errorf("%s: %d arguments for bad memory\n%s", name, n, hurt)
		}
		for _, before := range [][]byte{hurt, out} {
			if again := must(t, before, bad); !bytes.Equal(again, hurt) {
				t.Errorf("%s: the second call, with bad memory, returned:\n%s\nand the first call:\n%s", name, again, hurt)
			}
		}
	}
	if taken < 50 {
		t.Errorf("Attach accepts only %d domains", taken)
	}
}

func TestRefusals(t *testing.T) {
	v := at("data", 64*gibibyte, 32*mebibyte)
	one := []volumeinfo.Volume{v}
	for _, c := range []struct {
		in      []byte
		volumes []volumeinfo.Volume
		host    Host
		words   string
	}{
		{small(nil), nil, intel, "no claims"},
		{small(nil), []volumeinfo.Volume{v, at("x", v.Base+16*mebibyte, 32*mebibyte)}, intel, "claims data and x have the same addresses"},
		{small(func(d *libvirtxml.Domain) { d.Memory.Value = 63 }), one, intel, "claim data lies at 64Gi, and a VM with 63Gi has memory there: give it at most 62Gi"},
		{small(nil), []volumeinfo.Volume{at("far", 900*gibibyte, 128*gibibyte)}, Host{Bits: 46}, "processors of AMD"},
		{small(nil), []volumeinfo.Volume{at("far", 100<<40, 2*mebibyte)}, intel, "reaches to 64Ti (46 bits)"},
		{small(func(d *libvirtxml.Domain) { d.CPU = &libvirtxml.DomainCPU{Mode: "custom"} }), []volumeinfo.Volume{at("far", 2<<40, 2*mebibyte)}, intel, "(40 bits): set spec.domain.cpu.model to host-passthrough"},
		{small(func(d *libvirtxml.Domain) { d.Type = "qemu" }), []volumeinfo.Volume{at("far", 2<<40, 2*mebibyte)}, intel, "(40 bits)"},
		{small(func(d *libvirtxml.Domain) { d.OS.Type.Arch = "aarch64" }), one, intel, "x86_64 only"},
		{small(func(d *libvirtxml.Domain) { d.OS.Type.Arch = "a\nb" }), one, intel, `architecture "a\nb"`},
		{small(func(d *libvirtxml.Domain) { d.OS.Type.Machine = "microvm" }), one, intel, "machine.type to q35"},
		{small(func(d *libvirtxml.Domain) { d.OS = nil }), one, intel, "no element os/type"},
		{small(func(d *libvirtxml.Domain) { d.Memory = nil }), one, intel, "no memory element"},
		{small(func(d *libvirtxml.Domain) { d.Memory.Unit = "acres" }), one, intel, "no unit"},
		{small(func(d *libvirtxml.Domain) { d.Memory.Value = 1 << 63 }), one, intel, "is impossible"},
		{small(func(d *libvirtxml.Domain) {
			d.LaunchSecurity = &libvirtxml.DomainLaunchSecurity{SEV: &libvirtxml.DomainLaunchSecuritySEV{}}
		}), one, intel, "encrypted"},
		{small(func(d *libvirtxml.Domain) { d.MaximumMemory = &libvirtxml.DomainMaxMemory{Value: 4, Unit: "GiB"} }), one, intel, "maxGuest"},
		{small(func(d *libvirtxml.Domain) {
			d.Devices = &libvirtxml.DomainDeviceList{Memorydevs: []libvirtxml.DomainMemorydev{{Model: "virtio-mem"}}}
		}), one, intel, `another memory device ("virtio-mem")`},
		{small(func(d *libvirtxml.Domain) {
			d.Devices = &libvirtxml.DomainDeviceList{Memorydevs: []libvirtxml.DomainMemorydev{{Model: "a\nb"}}}
		}), one, intel, `another memory device ("a\nb")`},
		{[]byte("<domain>"), one, intel, "cannot be read"},
		{nil, one, intel, "cannot be read"},
		{bytes.Repeat([]byte(" "), mostXML+1), one, intel, "bytes of XML"},
		{[]byte(strings.Repeat("<domain>", 20000)), one, intel, "nested elements"},
		{[]byte("<domain></doman>"), one, intel, "</doman> ends no element"},
		{[]byte("<domain/><domain/>"), one, intel, "a second root element"},
		{[]byte(`<!DOCTYPE d [<!ENTITY e "x">]><domain>&e;</domain>`), one, intel, "a document type"},
		{[]byte("<network/>"), one, intel, "is no domain"},
	} {
		out, err := Attach(c.in, c.volumes, c.host)
		if err == nil || !strings.Contains(err.Error(), c.words) || strings.Contains(err.Error(), "\n") {
			t.Errorf("not refused with %q: %v: %.300s", c.words, err, out)
		}
	}
}

// TestFit checks the amount of memory that the error names: this amount fits, and a larger amount
// does not.
func TestFit(t *testing.T) {
	for _, base := range []uint64{5 * gibibyte, 6 * gibibyte, 16 * gibibyte, 64*gibibyte + 2*mebibyte} {
		v := at("data", base, 2*mebibyte)
		err := Fits(v, 1<<40)
		if err == nil {
			t.Fatal("Fits accepts a VM with 1 TiB")
		}
		_, words, _ := strings.Cut(err.Error(), "at most ")
		var most uint64
		var unit string
		if _, err := fmt.Sscanf(words, "%d%2s", &most, &unit); err != nil {
			t.Fatal(words)
		}
		most *= units[unit+"B"]
		if Fits(v, most) != nil || Fits(v, most+2*mebibyte) == nil && devicesStart(most+gibibyte) <= base {
			t.Errorf("a volume at 0x%x: the error allows %d bytes of memory, which is wrong", base, most)
		}
	}
}

// No VM has room for a volume below 4 GiB. So the error names no amount of memory.
func TestFitBelow4GiB(t *testing.T) {
	for _, base := range []uint64{0, 2 * mebibyte, gibibyte, 4*gibibyte - 2*mebibyte} {
		for _, memory := range []uint64{mebibyte, gibibyte, 1 << 40} {
			err := Fits(at("data", base, 2*mebibyte), memory)
			if err == nil || strings.Contains(err.Error(), "at most") || !strings.Contains(err.Error(), "below 4 GiB") {
				t.Errorf("a volume at 0x%x, and %d bytes of memory: %v", base, memory, err)
			}
		}
	}
	if err := Fits(at("data", 4*gibibyte, 2*mebibyte), gibibyte); err != nil {
		t.Error(err)
	}
}

func TestReadHost(t *testing.T) {
	h := readHost(strings.NewReader("vendor_id\t: GenuineIntel\nflags : x\naddress sizes\t: 39 bits physical, 48 bits virtual\n"))
	if h != (Host{Bits: 39, Intel: true}) {
		t.Errorf("%+v", h)
	}
	if h := ThisHost(); h.Bits < 32 || h.Bits > 52 {
		t.Errorf("this host: %+v", h)
	}
}

// rest returns the parts of a domain that Attach must not change.
func rest(t *testing.T, text []byte) string {
	t.Helper()
	root, err := parseTree(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, devices := range root.children("devices") {
		devices.replace("memory", nil)
	}
	for _, name := range []string{"maxMemory", "cpu", commandline} {
		root.replace(name, nil)
	}
	// Attach may change line breaks and empty elements.
	said := strings.ReplaceAll(root.String(), "<devices></devices>", "<devices/>")
	return strings.Join(strings.Fields(strings.ReplaceAll(said, "<devices/>", "")), " ")
}

// FuzzAttach checks that a second call does not change the result of the first call. No call drops
// other parts of a domain.
func FuzzAttach(f *testing.F) {
	for _, text := range stored(f) {
		f.Add(text, uint64(64)<<30, uint64(32)<<20, true)
	}
	f.Add(small(nil), ^uint64(0), uint64(2)<<20, false)
	f.Add(must2(small(nil)), uint64(64)<<30+1, uint64(2)<<20, false)
	f.Add(must2(small(nil)), uint64(64)<<30, uint64(2)<<20, false)
	f.Fuzz(func(t *testing.T, text []byte, base, length uint64, readOnly bool) {
		v := at("data", base&(1<<51-1)&^(volumeinfo.Extent-1), length&(1<<50-1)&^(volumeinfo.Extent-1)+volumeinfo.Extent)
		v.ReadOnly, v.Bad = readOnly, base&1 != 0 // rounding drops the lowest bit
		out, err := Attach(text, []volumeinfo.Volume{v}, intel)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has several lines: %q", err)
			}
			return
		}
		again, err := Attach(out, []volumeinfo.Volume{v}, intel)
		if err != nil || !bytes.Equal(again, out) {
			t.Errorf("again: %v\n%s\n%s", err, out, again)
		}
		if was, is := rest(t, text), rest(t, out); was != is {
			t.Errorf("Attach changes other parts of the domain, from\n%s\nto\n%s", was, is)
		}
	})
}

func must2(in []byte) []byte {
	out, err := Attach(in, []volumeinfo.Volume{at("data", 64<<30, 2<<20)}, intel)
	if err != nil {
		panic(err)
	}
	return out
}
