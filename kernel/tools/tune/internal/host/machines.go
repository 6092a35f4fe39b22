// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"
	"strconv"
	"strings"

	"stargate/tune/internal/system"
)

const debugfs = "/sys/kernel/debug/kvm"

// machine is a process that has a VM.
type machine struct {
	pid     int
	name    string
	folders []string // the folders of its VMs in KVM's debugfs
	threads []int
	vcpus   []int // the threads that run vCPUs
}

// machines returns the processes that have VMs. It finds them by the folders PID-FD of KVM's
// debugfs or, if debugfs is not mounted, by their descriptors.
func machines(sys system.System) []machine {
	found := map[int]*machine{}
	add := func(pid int) *machine {
		if found[pid] == nil {
			found[pid] = &machine{pid: pid}
		}
		return found[pid]
	}
	for _, name := range sys.List(debugfs) {
		first, _, isVM := strings.Cut(name, "-")
		if pid, err := strconv.Atoi(first); err == nil && isVM {
			one := add(pid)
			one.folders = append(one.folders, name)
		}
	}
	if len(found) == 0 {
		for _, name := range sys.List("/proc") {
			pid, err := strconv.Atoi(name)
			if err != nil {
				continue
			}
			for _, fd := range sys.List("/proc/" + name + "/fd") {
				if sys.Link("/proc/"+name+"/fd/"+fd) == "anon_inode:kvm-vm" {
					add(pid)
					break
				}
			}
		}
	}
	var all []machine
	for pid, one := range found {
		at := "/proc/" + strconv.Itoa(pid)
		for _, name := range sys.List(at + "/task") {
			if thread, err := strconv.Atoi(name); err == nil {
				one.threads = append(one.threads, thread)
			}
		}
		one.vcpus = vcpus(sys, one)
		command, _ := sys.Read(at + "/cmdline")
		one.name = vmName(strings.Split(command, "\x00"))
		if one.name == "" {
			one.name = sys.Text(at + "/comm")
		}
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b machine) int { return a.pid - b.pid })
	return all
}

// vmName returns the name in QEMU's option -name: "x", "x,debug-threads=on" or "guest=x,...".
func vmName(command []string) string {
	for i, word := range command {
		if (word != "-name" && word != "--name") || i+1 >= len(command) {
			continue
		}
		for j, part := range strings.Split(command[i+1], ",") {
			value, named := strings.CutPrefix(part, "guest=")
			if named || j == 0 && !strings.Contains(part, "=") {
				return value
			}
		}
	}
	return ""
}

// counters adds KVM's counters of all VMs of a machine.
func (m machine) counters(sys system.System) map[string]uint64 {
	sum := map[string]uint64{}
	for _, folder := range m.folders {
		for _, name := range sys.List(debugfs + "/" + folder) {
			if value, err := strconv.ParseUint(sys.Text(debugfs+"/"+folder+"/"+name), 10, 64); err == nil {
				sum[name] += value
			}
		}
	}
	return sum
}

// vcpus returns the threads that run vCPUs, which KVM's debugfs lists. Without debugfs, it finds
// them by the names that QEMU gives them with debug-threads=on.
func vcpus(sys system.System, m *machine) []int {
	var found []int
	for _, folder := range m.folders {
		for _, name := range sys.List(debugfs + "/" + folder) {
			if !strings.HasPrefix(name, "vcpu") {
				continue
			}
			if thread, ok := sys.Number(debugfs + "/" + folder + "/" + name + "/pid"); ok {
				found = append(found, int(thread))
			}
		}
	}
	if found != nil {
		return found
	}
	for _, thread := range m.threads {
		comm := sys.Text("/proc/" + strconv.Itoa(m.pid) + "/task/" + strconv.Itoa(thread) + "/comm")
		if strings.HasPrefix(comm, "CPU ") && strings.HasSuffix(comm, "/KVM") {
			found = append(found, thread)
		}
	}
	return found
}

// waited returns for how many nanoseconds the threads of a machine's vCPUs have waited for a
// processor, and the number of these threads.
func (m machine) waited(sys system.System) (ns uint64, vcpus int) {
	for _, thread := range m.vcpus {
		at := "/proc/" + strconv.Itoa(m.pid) + "/task/" + strconv.Itoa(thread)
		if fields := strings.Fields(sys.Text(at + "/schedstat")); len(fields) == 3 {
			value, _ := strconv.ParseUint(fields[1], 10, 64)
			ns += value
		}
	}
	return ns, len(m.vcpus)
}
