// SPDX-License-Identifier: Apache-2.0

// Package kubevirt tests the real stargate-hook with KubeVirt's own code. The converter of
// virt-launcher creates domains from the VMs in folder vms, and KubeVirt's own client of hooks
// sends them. Each answer is converted to KubeVirt's own types and then sent back to the hook, as
// in virt-launcher. The same sources are compiled with each version of KubeVirt: go.mod has 1.8,
// and go-VERSION.mod has another version (mk/test/kubevirt).
package kubevirt

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/api"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/converter"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/converter/arch"
	"sigs.k8s.io/yaml"
)

var (
	hookProgram = flag.String("hook", "", "stargate-hook")
	domains     = flag.String("domains", "", "folder in which the test stores the domains before and after the hook")
	update      = flag.Bool("update", false, "store KubeVirt's domains in the folder of the driver's own tests")
	stored      = flag.String("stored", "", "folder of the domains that the driver's own tests read")
)

const (
	annotation = "stargate.csi.dev/volumes"
	expected   = "test/refused" // annotation: words of the expected refusal
	base       = uint64(64) << 30
	size       = uint64(32) << 20
)

// machines returns all VMs of folder vms, completed like by an API server.
func machines(t *testing.T) map[string]*v1.VirtualMachineInstance {
	t.Helper()
	files, err := filepath.Glob("vms/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("VMs: %d, %v", len(files), err)
	}
	all := map[string]*v1.VirtualMachineInstance{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		vmi := &v1.VirtualMachineInstance{}
		if err := yaml.UnmarshalStrict(text, vmi); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		vmi.Name, vmi.Namespace, vmi.UID = name, "default", "4a5c5f3e-0000-4000-8000-00000000abcd"
		v1.SetObjectDefaults_VirtualMachineInstance(vmi)
		if vmi.Spec.Domain.Firmware == nil {
			vmi.Spec.Domain.Firmware = &v1.Firmware{}
		}
		vmi.Spec.Domain.Firmware.UUID = "0b5e55ed-0000-4000-8000-00000000beef"
		if vmi.Spec.Architecture == "" {
			vmi.Spec.Architecture = "amd64"
		}
		if vmi.Spec.Domain.Machine == nil {
			vmi.Spec.Domain.Machine = &v1.Machine{Type: "q35"}
		}
		all[name] = vmi
	}
	return all
}

// taps returns virt-handler's report about a VM's interfaces.
func taps(vmi *v1.VirtualMachineInstance) map[string]string {
	all := map[string]string{}
	for _, i := range vmi.Spec.Domain.Devices.Interfaces {
		if i.Masquerade != nil || i.Bridge != nil {
			all[i.Name] = string(v1.Tap)
		}
	}
	return all
}

// convert creates a domain like virt-launcher, with a similar context.
func convert(t *testing.T, vmi *v1.VirtualMachineInstance, emulate bool) *api.DomainSpec {
	t.Helper()
	c := &converterContext{
		Architecture: arch.NewConverter(vmi.Spec.Architecture), VirtualMachine: vmi, AllowEmulation: emulate,
		SerialConsoleLog: true, FreePageReporting: true, MemBalloonStatsPeriod: 10, CPUSet: []int{0, 1, 2, 3},
		DomainAttachmentByInterfaceName: taps(vmi),
	}
	complete(t, c, emulate, vmi.Spec.Domain.LaunchSecurity != nil && vmi.Spec.Domain.LaunchSecurity.SEV != nil)
	if vmi.IsBootloaderEFI() {
		c.EFIConfiguration = &efiConfiguration{
			EFICode: "/usr/share/OVMF/OVMF_CODE_4M.fd", EFIVars: "/usr/share/OVMF/OVMF_VARS_4M.fd", SecureLoader: false,
		}
	}
	d := &api.Domain{}
	if err := converter.Convert_v1_VirtualMachineInstance_To_api_Domain(vmi, d, c); err != nil {
		t.Fatalf("convert: %v", err)
	}
	api.NewDefaulter(vmi.Spec.Architecture).SetObjectDefaults_Domain(d)
	return &d.Spec
}

// lay creates the folders of claims like the mounts of the node plugin (D14).
func lay(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, name := range names {
		hidden := filepath.Join(dir, name, ".stargate")
		if err := os.MkdirAll(hidden, 0o755); err != nil {
			t.Fatal(err)
		}
		at := base + uint64(i)<<30
		text := fmt.Sprintf(`{"kind":"file","volume":%q,"base":"0x%x","size":%d,"alignment":2097152}`, name, at, size)
		if err := os.WriteFile(filepath.Join(hidden, "volume.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		region := filepath.Join(hidden, "region")
		if err := os.WriteFile(region, nil, 0o660); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(region, int64(size)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// startHook starts the program at a socket.
func startHook(t *testing.T, volumes, socket string) {
	t.Helper()
	startProgram(t, *hookProgram, socket, "--socket", socket, "--volumes", volumes)
}

// startProgram starts a program and waits for its socket.
func startProgram(t *testing.T, program, socket string, args ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v: %s", filepath.Base(program), err, said.String())
		}
	})
	for range 200 {
		if _, err := os.Stat(socket); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("no %s: %s", filepath.Base(program), said.String())
}

// again converts an answer to KubeVirt's types and back.
func again(t *testing.T, text string) *api.DomainSpec {
	t.Helper()
	spec := &api.DomainSpec{}
	if err := xml.Unmarshal([]byte(text), spec); err != nil {
		t.Fatalf("KubeVirt cannot read it: %v", err)
	}
	return spec
}

func marshal(t *testing.T, spec *api.DomainSpec) string {
	t.Helper()
	text, err := xml.MarshalIndent(spec, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// element is an XML element without the order of its children.
type element struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Nodes   []element  `xml:",any"`
}

// paths returns the number of elements with each path, attributes and text.
func paths(t *testing.T, text string) map[string]int {
	t.Helper()
	var root element
	if err := xml.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	var walk func(at string, e element)
	walk = func(at string, e element) {
		at += "/" + e.XMLName.Local
		all[at]++
		if words := strings.TrimSpace(e.Text); words != "" {
			all[at+"="+words]++
		}
		for _, a := range e.Attrs {
			if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" {
				continue
			}
			all[at+"@"+a.Name.Local+"="+a.Value]++
		}
		for _, n := range e.Nodes {
			walk(at, n)
		}
	}
	walk("", root)
	return all
}

// kept returns an error unless the answer has all elements that KubeVirt has sent.
func kept(t *testing.T, in, out string) {
	t.Helper()
	answer := paths(t, out)
	for way, n := range paths(t, in) {
		if answer[way] < n && !strings.HasSuffix(way, "=") {
			t.Errorf("lost: %s", way)
		}
	}
}

// given checks the elements that the hook must have added.
func given(t *testing.T, out, claims string) {
	t.Helper()
	all := strings.Count(claims, ",") + 1
	readOnly := strings.Count(claims, ":ro")
	answer := paths(t, out)
	for way, n := range map[string]int{
		"/domain/devices/memory":                                       all - readOnly,
		"/domain/devices/memory@model=nvdimm":                          all - readOnly,
		"/domain/devices/memory@access=shared":                         all - readOnly,
		"/domain/devices/memory/source/path":                           all - readOnly,
		"/domain/devices/memory/source/alignsize=2048":                 all - readOnly,
		fmt.Sprintf("/domain/devices/memory/target/size=%d", size>>10): all - readOnly,
		fmt.Sprintf("/domain/maxMemory@slots=%d", all):                 1,
		"/domain/cpu/numa":                                             1,
		"/domain/commandline/arg@value=-object":                        readOnly,
	} {
		if answer[way] != n {
			t.Errorf("%s: %d, not %d", way, answer[way], n)
		}
	}
	if n := strings.Count(out, "0x1000000000"); n != 1 && strings.Contains(claims, "data") {
		t.Errorf("the domain has claim data at its address %d times", n)
	}
}

// keep stores a domain for other tests.
func keep(t *testing.T, name, text string) {
	t.Helper()
	if *domains == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*domains, name), []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestStored checks that the domains in the driver's own tests are equal to those of this KubeVirt.
func TestStored(t *testing.T) {
	for name, vmi := range machines(t) {
		text := marshal(t, convert(t, vmi, strings.Contains(name, "emulated"))) + "\n"
		path := filepath.Join(*stored, name+".xml")
		if *update {
			if err := os.MkdirAll(*stored, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(path)
		if err != nil || string(have) != text {
			t.Errorf("%s differs from KubeVirt's domain (%v): run mk/test/kubevirt update", path, err)
		}
	}
}

// define calls the hook once, with KubeVirt's code.
type define func(spec *api.DomainSpec, vmi *v1.VirtualMachineInstance) (string, error)

// arrives returns the text of a domain that the hook gets.
type arrives func(t *testing.T, spec *api.DomainSpec) string

// throughHook sends the domains of all VMs through the hook.
func throughHook(t *testing.T, version string, sent arrives, call define) {
	for name, vmi := range machines(t) {
		t.Run(name, func(t *testing.T) {
			spec := convert(t, vmi, strings.Contains(name, "emulated"))
			in := sent(t, spec)
			first, err := call(spec, vmi)
			if words := vmi.Annotations[expected]; words != "" {
				if err == nil || !strings.Contains(err.Error(), words) {
					t.Fatalf("the hook accepts the domain, or its error does not contain %q: %v", words, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			claims := vmi.Annotations[annotation]
			given(t, first, claims)
			kept(t, in, first)
			second, err := call(again(t, first), vmi)
			if err != nil {
				t.Fatalf("the second time: %v", err)
			}
			given(t, second, claims)
			kept(t, in, second)
			third, err := call(again(t, second), vmi)
			if err != nil || third != second {
				t.Errorf("the third answer differs: %v", err)
			}
			keep(t, version+"-"+name+".in.xml", in)
			keep(t, version+"-"+name+".out.xml", first)
			keep(t, version+"-"+name+".again.xml", second)
		})
	}
}
