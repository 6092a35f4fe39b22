// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"fmt"
	"strings"

	"stargate/tune/internal/host"
)

func ports(_ Input, vm host.VM) *Advice {
	var seen []string
	var sum float64
	for _, one := range vm.Ports {
		if one.PerSecond < portBusy {
			continue
		}
		device := one.Device
		if device == "" {
			device = "unknown"
		}
		seen = append(seen, fmt.Sprintf("0x%x %s (%s): %.0f", one.Port, one.Direction, device, one.PerSecond))
		sum += one.PerSecond
	}
	if seen == nil {
		return nil
	}
	return &Advice{
		Title:    "avoid emulated devices that exit all the time, in VM " + vm.Name,
		Reason:   "each access to a port exits to the program that emulates the device",
		Evidence: "accesses a second: " + strings.Join(seen, "; "),
		Saving:   fmt.Sprintf("up to %.0f of %.0f exits a second", sum, vm.Exits),
		Risk:     "depends on the device: the advice for the guest names it",
		Undo:     "restore the definition of the virtual machine",
		Commands: []string{"run `stargate-tune advise` in the guest; give it virtio devices and kvm-clock; remove its serial port and its display if nobody uses them"},
	}
}

func haltPolls(_ Input, vm host.VM) *Advice {
	if vm.Polled < pollWaste {
		return nil
	}
	return &Advice{
		Title:    "poll less for halted vCPUs of VM " + vm.Name,
		Reason:   "before a vCPU sleeps, KVM polls for its next event; on this host most of these polls still end in a sleep",
		Evidence: fmt.Sprintf("%.0f polls a second, %.0f of them successful; the failed ones took %.1f %% of a processor", vm.Attempts, vm.Polls, vm.Polled),
		Saving:   fmt.Sprintf("up to %.1f %% of a processor", vm.Polled),
		Risk:     "wake-ups of all VMs of this host take longer by the time of a context switch",
		Undo:     "write the former value (200000 by default), or reboot",
		Commands: []string{"echo 50000 >/sys/module/kvm/parameters/halt_poll_ns"},
	}
}

func waiting(_ Input, vm host.VM) *Advice {
	if vm.VCPUs == 0 || vm.Steal < stolen*float64(vm.VCPUs) {
		return nil
	}
	return &Advice{
		Title:    "reserve processors for VM " + vm.Name,
		Reason:   "its vCPUs are ready to run and wait for a processor",
		Evidence: fmt.Sprintf("%d vCPUs wait %.1f %% of a processor's time", vm.VCPUs, vm.Steal),
		Saving:   "up to that time; " + notMeasured,
		Risk:     "fewer VMs on this host",
		Undo:     "restore the definition of the virtual machine",
		Commands: []string{"in libvirt: <vcpupin>; in KubeVirt: cpu.dedicatedCpuPlacement: true"},
	}
}

func timers(_ Input, vm host.VM) *Advice {
	if vm.VCPUs == 0 || vm.Timers < 500*float64(vm.VCPUs) {
		return nil
	}
	return &Advice{
		Title:    "fewer timer interrupts in VM " + vm.Name,
		Reason:   "each timer interrupt causes an exit that sets the timer, and one or more exits that deliver the interrupt",
		Evidence: fmt.Sprintf("%.0f timer interrupts a second on %d vCPUs", vm.Timers, vm.VCPUs),
		Saving:   notMeasured,
		Risk:     "depends on the program in the guest that sets the timers",
		Undo:     "restore the guest's settings",
		Commands: []string{"in the guest: run `stargate-tune advise` (nohz=off, highres=off, HZ); search /proc/timer_list for programs with short timers"},
	}
}
