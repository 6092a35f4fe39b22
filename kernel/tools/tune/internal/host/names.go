// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"stargate/tune/internal/system"
)

// reasonNames returns the names of exit reasons from the format of the event kvm_exit. In this file
// each kernel lists its reasons separately for VMX and for SVM.
func reasonNames(sys system.System, at string) map[uint64]string {
	format := sys.Text(at + "/events/kvm/kvm_exit/format")
	cpuinfo, _ := sys.Read("/proc/cpuinfo")
	svm := false
	for line := range strings.SplitSeq(cpuinfo, "\n") {
		if strings.HasPrefix(line, "flags") {
			svm = slices.Contains(strings.Fields(line), "svm")
			break
		}
	}
	_, printed, _ := strings.Cut(format, "print fmt:")
	var lists []map[uint64]string
	for i, part := range strings.Split(printed, "__print_symbolic") {
		if i == 0 {
			continue
		}
		names := map[uint64]string{}
		// a list ends at the ":" between the two lists
		for pair := range strings.SplitSeq(part, "{") {
			pair, _, _ = strings.Cut(pair, "}")
			number, name, ok := strings.Cut(pair, ",")
			value, err := strconv.ParseUint(strings.TrimSpace(number), 0, 64)
			if ok && err == nil {
				names[value] = strings.Trim(strings.TrimSpace(name), `"`)
			}
		}
		if len(names) > 0 {
			lists = append(lists, names)
		}
	}
	switch {
	case len(lists) == 0:
		return nil
	case svm && len(lists) > 1:
		return lists[1]
	default:
		return lists[0]
	}
}

// ports are ranges of a PC's ports that emulators still have. A range ends before its second
// number.
var ports = []struct {
	from, to uint64
	device   string
}{
	{0x20, 0x22, "interrupt controller (PIC)"}, {0x40, 0x44, "timer (PIT)"},
	{0x60, 0x65, "keyboard controller"}, {0x70, 0x72, "clock (RTC)"},
	{0x80, 0x81, "delay (port 80)"}, {0xa0, 0xa2, "interrupt controller (PIC)"},
	{0x170, 0x178, "disk (IDE, second channel)"}, {0x1f0, 0x1f8, "disk (IDE, first channel)"},
	{0x2f8, 0x300, "serial port 2"}, {0x376, 0x377, "disk (IDE, second channel)"},
	{0x3b0, 0x3e0, "display (VGA)"}, {0x3f6, 0x3f7, "disk (IDE, first channel)"},
	{0x3f8, 0x400, "serial port 1"}, {0x402, 0x403, "firmware's debug port"},
	{0x510, 0x519, "firmware configuration"}, {0x604, 0x606, "ACPI power control"},
	{0x608, 0x60c, "ACPI timer"}, {0xb008, 0xb00c, "ACPI timer"}, {0xcf8, 0xd00, "PCI configuration"},
}

// PortDevice names the device behind a port of QEMU's machines.
func PortDevice(port uint64) string {
	for _, one := range ports {
		if port >= one.from && port < one.to {
			return one.device
		}
	}
	if port >= 0xc000 {
		return "a PCI device's ports"
	}
	return ""
}

var msrs = map[uint64]string{
	0x6e0: "timer deadline (TSC_DEADLINE)", 0x48: "speculation control", 0x830: "interrupt command (x2APIC)",
	0x80b: "end of interrupt (x2APIC)", 0x838: "timer count (x2APIC)", 0x10: "time stamp counter",
	0x3b: "TSC_ADJUST", 0x4b564d01: "kvm-clock", 0x4b564d00: "wall clock (KVM)",
}

func msrName(number uint64, written bool) string {
	name := msrs[number]
	if name == "" {
		name = fmt.Sprintf("MSR 0x%x", number)
	}
	if written {
		return name + ", written"
	}
	return name + ", read"
}

// Symbols has a guest's functions: addresses in ascending order, and their names.
type Symbols struct {
	starts []uint64
	names  []string
}

// LoadSymbols reads lines "ADDRESS TYPE NAME ..." from a copy of the guest's /proc/kallsyms. If the
// kernel runs at the addresses for which it was linked (nokaslr), the file may be its System.map.
func LoadSymbols(path string) (*Symbols, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	type symbol struct {
		start uint64
		name  string
	}
	var all []symbol
	lines := bufio.NewScanner(io.LimitReader(file, 256<<20))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || !strings.Contains("tTwW", fields[1]) {
			continue
		}
		start, err := strconv.ParseUint(fields[0], 16, 64)
		if err == nil && start != 0 {
			all = append(all, symbol{start, fields[2]})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no symbols: copy /proc/kallsyms of the guest as root", path)
	}
	slices.SortStableFunc(all, func(a, b symbol) int {
		switch {
		case a.start < b.start:
			return -1
		case a.start > b.start:
			return 1
		}
		return 0
	})
	s := &Symbols{}
	for _, one := range all {
		s.starts = append(s.starts, one.start)
		s.names = append(s.names, one.name)
	}
	return s, nil
}

// Name returns the function that contains an address, or nothing. It returns nothing for addresses
// of user space, and for those more than a MiB behind the last function.
func (s *Symbols) Name(address uint64) string {
	if s == nil {
		return ""
	}
	i, found := slices.BinarySearch(s.starts, address)
	if !found {
		i--
	}
	if i < 0 || address>>63 == 0 || address-s.starts[i] > 1<<20 {
		return ""
	}
	return s.names[i]
}
