// SPDX-License-Identifier: Apache-2.0

package host

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"stargate/tune/internal/system"
)

func write(t *testing.T, sys system.System, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(sys.Path(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sys.Path(path), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const format = `name: kvm_exit
format:
	field:unsigned int exit_reason;	offset:8;	size:4;	signed:0;

print fmt: "vcpu %u reason %s%s%s rip 0x%lx", REC->vcpu_id, (REC->isa == 1) ? __print_symbolic(REC->exit_reason & 0xffff, { 0, "EXCEPTION_NMI" }, { 12, "HLT" }, { 30, "IO_INSTRUCTION" }) : __print_symbolic(REC->exit_reason, { 0x078, "hlt" }, { 0x07b, "io" }, { 0x400, "npf" }), REC->guest_rip
`

// hist returns a file hist in the kernel's format: one part for each trigger of the event.
func hist(parts ...string) string {
	text := ""
	for _, part := range parts {
		keys, lines, _ := strings.Cut(part, "\n")
		text += "# event histogram\n#\n# trigger info: hist:keys=" + keys +
			":vals=hitcount:sort=hitcount:size=2048 [active]\n#\n\n" + lines + "\nTotals:\n    Hits: 1000\n    Entries: 3\n    Dropped: 7\n\n\n"
	}
	return text
}

// host makes a host with a VM that has two vCPUs, one of which waits. The rates are for two
// seconds.
func host(t *testing.T, cpu string) (system.System, func()) {
	t.Helper()
	sys := system.System{Root: t.TempDir()}
	at := "/sys/kernel/tracing/instances/" + prefix + strconv.Itoa(os.Getpid()) + "/events/kvm/"
	files := map[string]string{
		"/proc/sys/kernel/osrelease":                     "6.12.1\n",
		"/proc/cpuinfo":                                  "flags : fpu " + cpu + "\n",
		debugfs + "/exits":                               "999\n",
		debugfs + "/100-12/exits":                        "1000\n",
		debugfs + "/100-12/halt_wakeup":                  "10\n",
		debugfs + "/100-12/halt_poll_fail_ns":            "0\n",
		debugfs + "/100-12/vcpu0/pid":                    "101\n",
		debugfs + "/100-12/vcpu1/pid":                    "102\n",
		"/proc/100/cmdline":                              "qemu\x00-name\x00guest=one,debug-threads=on\x00",
		"/proc/100/comm":                                 "qemu-system-x86\n",
		"/proc/100/task/100/comm":                        "qemu-system-x86\n",
		"/proc/100/task/100/schedstat":                   "1 9000000000 1\n",
		"/proc/100/task/101/comm":                        "qemu-system-x86\n",
		"/proc/100/task/101/schedstat":                   "1 1000000000 1\n",
		"/proc/100/task/102/comm":                        "qemu-system-x86\n",
		"/proc/100/task/102/schedstat":                   "1 0 1\n",
		"/sys/kernel/tracing/events/kvm/kvm_exit/format": format,
	}
	for _, event := range []string{"kvm_exit", "kvm_pio", "kvm_mmio", "kvm_msr", "kvm_inj_virq"} {
		files[at+event+"/trigger"] = ""
	}
	files[at+"kvm_exit/format"] = format
	files[at+"kvm_exit/hist"] = hist("common_pid,exit_reason\n"+
		"{ common_pid:        101, exit_reason:         30 } hitcount:        600\n"+
		"{ common_pid:        102, exit_reason:         12 } hitcount:        200\n"+
		"{ common_pid:        555, exit_reason:         12 } hitcount:        900\n",
		"common_pid,exit_reason,guest_rip\n"+
			"{ common_pid:        101, exit_reason:         30, guest_rip: 18446744071579009040 } hitcount:        500\n"+
			"{ common_pid:        101, exit_reason:         30, guest_rip: 18446744071579009048 } hitcount:        100\n"+
			"{ common_pid:        102, exit_reason:         12, guest_rip: 4096 } hitcount:        200\n")
	files[at+"kvm_pio/hist"] = hist("common_pid,port,rw\n{ common_pid:        101, port:       1016, rw:          1 } hitcount:        600\n")
	files[at+"kvm_mmio/hist"] = hist("common_pid,gpa,type\n{ common_pid: 101, gpa: 4276092928, type: 2 } hitcount: 20\n{ common_pid: 101, gpa: 4276092928, type: 0 } hitcount: 8\n")
	files[at+"kvm_msr/hist"] = hist("common_pid,ecx,write\n{ common_pid: 101, ecx: 1760, write: 1 } hitcount: 40\n")
	files[at+"kvm_inj_virq/format"] = "\tfield:unsigned int vector;\toffset:8;\tsize:4;\tsigned:0;\n"
	files[at+"kvm_inj_virq/hist"] = hist("common_pid,vector\n{ common_pid: 101, vector: 236 } hitcount: 40\n{ common_pid: 101, vector: 33 } hitcount: 20\n")
	for path, text := range files {
		write(t, sys, path, text)
	}
	return sys, func() {
		write(t, sys, debugfs+"/100-12/exits", "1800\n")
		write(t, sys, debugfs+"/100-12/halt_wakeup", "110\n")
		write(t, sys, debugfs+"/100-12/halt_poll_fail_ns", "200000000\n")
		write(t, sys, "/proc/100/task/101/schedstat", "1 1400000000 1\n")
	}
}

func collect(t *testing.T, cpu string, symbols *Symbols) *Facts {
	t.Helper()
	sys, later := host(t, cpu)
	return Collect(sys, symbols, func() float64 { later(); return 2 })
}

func TestCollect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kallsyms")
	if err := os.WriteFile(path, []byte("ffffffff81000000 T _stext\nffffffff81234500 t serial8250_tx\n0 T none\nrubbish\nffffffff82000000 D data\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	symbols, err := LoadSymbols(path)
	if err != nil {
		t.Fatal(err)
	}
	f := collect(t, "vmx", symbols)
	if len(f.VMs) != 1 {
		t.Fatalf("%+v", f)
	}
	vm := f.VMs[0]
	inKernel := uint64(18446744071579009040)
	for _, one := range []struct {
		what      string
		got, want any
	}{
		{"name", vm.Name, "one"}, {"process", vm.PID, 100}, {"vCPUs", vm.VCPUs, 2},
		{"exits", vm.Exits, 400.0}, {"wake-ups", vm.Wakeups, 50.0}, {"polls in vain", vm.Polled, 10.0},
		{"steal", vm.Steal, 20.0}, {"injected", vm.Injected, 30.0}, {"timers", vm.Timers, 20.0},
		{"reasons", vm.Reasons, []Rate{{"IO_INSTRUCTION", 300}, {"HLT", 100}}},
		{"addresses", vm.Addresses, []Address{{"", symbols.Name(inKernel), "IO_INSTRUCTION", 300}, {"0x1000", "", "HLT", 100}}},
		{"ports", vm.Ports, []Port{{0x3f8, "out", "serial port 1", 300}}},
		{"emulated memory", vm.MMIO, []Rate{{"0xfee00000, written", 10}}},
		{"registers", vm.MSRs, []Rate{{"timer deadline (TSC_DEADLINE), written", 20}}},
	} {
		if !reflect.DeepEqual(one.got, one.want) {
			t.Errorf("%s: %+v, should be %+v", one.what, one.got, one.want)
		}
	}
	if len(f.Missing) != len(triggers) {
		t.Errorf("each histogram dropped events: %q", f.Missing)
	}
}

func TestReasonsOfSVM(t *testing.T) {
	sys := system.System{Root: t.TempDir()}
	write(t, sys, "/x/events/kvm/kvm_exit/format", format)
	write(t, sys, "/proc/cpuinfo", "flags : svm\n")
	if names := reasonNames(sys, "/x"); names[0x400] != "npf" || names[0x78] != "hlt" || names[12] != "" {
		t.Errorf("%v", names)
	}
	write(t, sys, "/proc/cpuinfo", "flags : vmx\n")
	if names := reasonNames(sys, "/x"); names[12] != "HLT" {
		t.Errorf("%v", names)
	}
}

// No trigger may remain after the measurement.
func TestTriggersEnd(t *testing.T) {
	sys, _ := host(t, "vmx")
	at := "/sys/kernel/tracing/instances/" + prefix + strconv.Itoa(os.Getpid())
	Collect(sys, nil, func() float64 {
		if got := sys.Text(at + "/events/kvm/kvm_pio/trigger"); got != "hist:keys=common_pid,port,rw:size=2048" {
			t.Errorf("during the measurement: %q", got)
		}
		return 1
	})
	for _, one := range triggers {
		if got := sys.Text(at + "/events/kvm/" + one.event + "/trigger"); !strings.HasPrefix(got, "!hist:") {
			t.Errorf("%s: %q", one.event, got)
		}
	}
}

func TestSweepRemovesInstancesOfTheDead(t *testing.T) {
	sys := system.System{Root: t.TempDir()}
	for name, stays := range map[string]bool{prefix + "4194305": false, prefix + "1": true, prefix + "x": true, "others": true, prefix + "-1": true} {
		path := "/sys/kernel/tracing/instances/" + name
		if err := os.MkdirAll(sys.Path(path), 0o755); err != nil {
			t.Fatal(err)
		}
		sweep(sys, "/sys/kernel/tracing")
		if sys.Exists(path) != stays {
			t.Errorf("%s: stays %v", name, !stays)
		}
	}
}

func TestNothingThere(t *testing.T) {
	f := Collect(system.System{Root: t.TempDir()}, nil, func() float64 { return 1 })
	if len(f.VMs) != 0 || len(f.Missing) != 2 || !strings.Contains(f.Missing[0], "debugfs") || !strings.Contains(f.Missing[1], "tracefs is not mounted") {
		t.Errorf("%+v", f)
	}
	sys := system.System{Root: t.TempDir()}
	if err := os.MkdirAll(sys.Path("/sys/kernel/tracing/instances"), 0o755); err != nil {
		t.Fatal(err)
	}
	if f := Collect(sys, nil, func() float64 { return 1 }); !strings.Contains(f.Missing[1], "KVM is not loaded") {
		t.Errorf("%+v", f)
	}
}

// Without debugfs, the program finds a VM by its descriptor.
func TestMachinesByDescriptor(t *testing.T) {
	sys := system.System{Root: t.TempDir()}
	write(t, sys, "/proc/7/comm", "vmm\n")
	write(t, sys, "/proc/7/task/8/comm", "qemu-system-x86\n")
	if err := os.MkdirAll(sys.Path("/proc/7/fd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("anon_inode:kvm-vm", sys.Path("/proc/7/fd/9")); err != nil {
		t.Fatal(err)
	}
	if vms := machines(sys); len(vms) != 1 || vms[0].pid != 7 || vms[0].name != "vmm" || len(vms[0].threads) != 1 {
		t.Errorf("%+v", vms)
	}
}

func TestNames(t *testing.T) {
	for want, words := range map[string]string{"one": "q -name one", "two": "q -name guest=two,debug-threads=on",
		"three": "q -name debug-threads=on,guest=three", "": "q -name", "four": "q -name four,process=x"} {
		if got := vmName(strings.Fields(words)); got != want {
			t.Errorf("%q: %q", words, got)
		}
	}
	for port, want := range map[uint64]string{0x1f7: "disk (IDE, first channel)", 0x608: "ACPI timer", 0x3f8: "serial port 1", 0xc040: "a PCI device's ports", 0x5: ""} {
		if got := PortDevice(port); got != want {
			t.Errorf("port 0x%x: %q", port, got)
		}
	}
	var none *Symbols
	some := &Symbols{starts: []uint64{1<<63 + 100, 1<<63 + 200}, names: []string{"a", "b"}}
	for _, one := range []struct {
		symbols *Symbols
		address uint64
		want    string
	}{{none, 1 << 63, ""}, {some, 1<<63 + 99, ""}, {some, 1<<63 + 100, "a"}, {some, 1<<63 + 199, "a"}, {some, 1<<63 + 200, "b"},
		{some, 150, ""}, {some, math.MaxUint64, ""}} {
		if got := one.symbols.Name(one.address); got != one.want {
			t.Errorf("0x%x: %q, should be %q", one.address, got, one.want)
		}
	}
}

func TestRubbish(t *testing.T) {
	for _, text := range []string{"", "{", "{ } hitcount: x", "{ a: } hitcount:", "} hitcount: 3 {", "Dropped: x", "{ a: -1, b: 0x10 } hitcount: 99999999999999999999"} {
		parse(text)
		blocks("# event histogram\n# trigger info: hist:keys=" + text)
	}
	for _, text := range []string{"", "\n\n", "x y z\n", "ffffffff81000000 D data\n"} {
		path := filepath.Join(t.TempDir(), "symbols")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadSymbols(path); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
