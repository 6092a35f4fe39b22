// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"fmt"
	"slices"
	"strings"

	"stargate/tune/internal/change"
	"stargate/tune/internal/guest"
)

// Limits above which rules give advice. They are choices, not measurements.
const (
	stolen     = 5.0  // percent of the guest's time that vCPUs waited for a processor
	tickShare  = 0.5  // of HZ, on a guest that is mostly idle
	mostlyIdle = 90.0 // percent
	tickBusy   = 50.0 // timer interrupts a second and vCPU
	irqBusy    = 5000 // interrupts a second of a network device
	irqSome    = 100  // interrupts a second that are worth spreading
	serialBusy = 50.0 // bytes a second
	portBusy   = 10.0 // exits a second by one port
	pollWaste  = 5.0  // percent of a processor
	readaheadK = 1024 // KiB
)

func clock(_ Input, f *guest.Facts) *Advice {
	now := f.Clock.Current
	if now == "" || now == "tsc" || now == "kvm-clock" {
		return nil
	}
	a := &Advice{
		Title:    "read the time without an exit",
		Reason:   "each reading of clock source " + now + " causes at least one exit to the host; a guest reads kvm-clock and tsc without an exit, and its programs read them without a system call",
		Evidence: "the clock source is " + now + "; available: " + strings.Join(f.Clock.Available, " "),
		Saving:   "each reading of the time: one exit and one system call less; " + notMeasured + " as a rate here",
		Risk:     "tsc is correct only if the processor's counter never stops (invariant_tsc)",
	}
	better := ""
	if slices.Contains(f.Clock.Available, "kvm-clock") {
		better = "kvm-clock"
	} else if slices.Contains(f.Clock.Available, "tsc") && f.Clock.InvariantTSC {
		better = "tsc"
	}
	if better == "" {
		a.Title = "offer the guest a clock that needs no exit"
		a.Commands = []string{"in QEMU: -cpu host,kvmclock=on; in the guest, remove the kernel arguments no-kvmclock and notsc"}
		a.Undo = "restore the definition of the virtual machine"
		return a
	}
	a.Settings = []change.Setting{{Kind: change.Attribute, Value: better,
		Name:  "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		Match: `SUBSYSTEM=="clocksource", KERNEL=="clocksource0"`}}
	return a
}

// In P2, verify_pmtmr_rate was one of the functions with many exits. Today a watchdog of the kernel
// reads the ACPI timer or the HPET twice a second to verify the TSC.
func pmTimer(in Input, f *guest.Facts) *Advice {
	if in.Host == nil || f.Clock.Current != "tsc" || !f.Clock.InvariantTSC {
		return nil
	}
	if value, _ := f.Argument("tsc"); value == "reliable" || value == "nowatchdog" {
		return nil
	}
	for _, vm := range in.Host.VMs {
		for _, port := range vm.Ports {
			if port.Device == "ACPI timer" && port.PerSecond >= 0.5 {
				return &Advice{
					Title:    "do not verify the TSC against the ACPI timer",
					Reason:   "the kernel's watchdog of clock sources reads an emulated timer to verify the TSC; each read is an exit (P2 3.2.1 removed such a check)",
					Evidence: fmt.Sprintf("VM %s reads the ACPI timer (port 0x%x) %.1f times a second", vm.Name, port.Port, port.PerSecond),
					Saving:   fmt.Sprintf("%.1f exits a second", port.PerSecond),
					Risk:     "nothing then detects an unstable counter; on this guest invariant_tsc is set",
					Settings: []change.Setting{{Kind: change.Argument, Name: "tsc=reliable"}},
				}
			}
		}
	}
	return nil
}

func features(_ Input, f *guest.Facts) *Advice {
	var words, names []string
	for _, argument := range []string{"nopv", "no-kvmclock", "no-kvmapf", "no-steal-acc", "nopvspin"} {
		if f.Has(argument) {
			words = append(words, argument)
		}
	}
	for _, one := range f.Unused {
		if strings.Contains(one, "argument ") {
			names = append(names, one)
		}
	}
	if len(words) == 0 || len(names) == 0 {
		return nil
	}
	return &Advice{
		Title:    "use all features that the hypervisor offers",
		Reason:   "kernel arguments turn off paravirtual features that KVM offers this guest",
		Evidence: strings.Join(names, "; "),
		Saving:   notMeasured,
		Risk:     "somebody may have added an argument for a reason: ask the administrator",
		Undo:     "add the arguments again",
		Commands: []string{"remove from the kernel's command line (/etc/default/grub): " + strings.Join(words, " ")},
	}
}

func haltpoll(in Input, f *guest.Facts) *Advice {
	if !in.Dedicated || !f.Idle.CanHaltpoll || f.Idle.Driver == "haltpoll" || f.Steal >= 1 || f.Has("idle") {
		return nil
	}
	return &Advice{
		Title:    "poll in the guest before a vCPU halts",
		Reason:   "a halt is an exit, and a wake-up costs time in the host's scheduler; a vCPU with its own processor can first poll in the guest for a short time; the host then does not poll for this vCPU",
		Evidence: fmt.Sprintf("each vCPU has a processor; idle driver %q, governor %q, steal %.1f %%", f.Idle.Driver, f.Idle.Governor, f.Steal),
		Saving:   notMeasured + " here; the kernel's documentation (virt/guest-halt-polling) promises fewer exits and wake-ups, without a figure",
		Risk:     "the host's processors use more power; on shared processors, polling takes time from other VMs",
		Settings: []change.Setting{{Kind: change.Argument, Name: "cpuidle_haltpoll.force=1"}},
	}
}

func haltpollShared(in Input, f *guest.Facts) *Advice {
	value, forced := f.Argument("cpuidle_haltpoll.force")
	polls := forced && value != "0" && value != "N" && value != "n"
	idle, _ := f.Argument("idle")
	if in.Dedicated || !polls && idle != "poll" {
		return nil
	}
	word := "cpuidle_haltpoll.force=" + value
	if !polls {
		word = "idle=poll"
	}
	return &Advice{
		Title:    "do not poll on shared processors",
		Reason:   "while vCPUs without processors of their own poll, other VMs cannot use the processor",
		Evidence: fmt.Sprintf("kernel argument %s; the hypervisor gives no hint of dedicated processors; steal %.1f %%", word, f.Steal),
		Saving:   notMeasured,
		Risk:     "a wake-up takes longer by one halt",
		Undo:     "add the argument again",
		Commands: []string{"remove from the kernel's command line (/etc/default/grub): " + word +
			"; or, if each vCPU has a processor, give stargate-tune --dedicated"},
	}
}

func ticks(_ Input, f *guest.Facts) *Advice {
	if f.Ticks.Stops || f.Ticks.HZ == 0 || f.Ticks.Idle < mostlyIdle ||
		f.Ticks.PerSecond < tickShare*float64(f.Ticks.HZ)*float64(f.CPUs) {
		return nil
	}
	word := "nohz=off"
	if value, _ := f.Argument("nohz"); value != "off" {
		word = "highres=off"
	}
	return &Advice{
		Title:    "stop the tick on idle vCPUs",
		Reason:   "each tick is a timer interrupt, which causes two or more exits; an idle vCPU needs no tick (P2 3.1.2 reduced the rate instead)",
		Evidence: fmt.Sprintf("%.0f timer interrupts a second on %d vCPUs that are %.0f %% idle; HZ is %d; argument %s", f.Ticks.PerSecond, f.CPUs, f.Ticks.Idle, f.Ticks.HZ, word),
		Saving:   fmt.Sprintf("up to %.0f timer interrupts a second while idle", f.Ticks.PerSecond),
		Risk:     "the first interrupt after a long sleep takes longer",
		Undo:     "add the argument again",
		Commands: []string{"remove from the kernel's command line (/etc/default/grub): " + word},
	}
}

func nohzFull(in Input, f *guest.Facts) *Advice {
	busy := f.Ticks.Idle < 50 && f.Ticks.PerSecond >= tickBusy*float64(f.CPUs)
	if !in.Dedicated || !f.Ticks.CanFull || f.Ticks.Full != "" || f.CPUs < 4 || !busy {
		return nil
	}
	list := fmt.Sprintf("1-%d", f.CPUs-1)
	return &Advice{
		Title:    "no tick on busy vCPUs that run one thread each",
		Reason:   "a vCPU with one runnable thread needs no tick; each one is a timer interrupt with its exits",
		Evidence: fmt.Sprintf("%.0f timer interrupts a second on %d dedicated vCPUs, %.0f %% idle", f.Ticks.PerSecond, f.CPUs, f.Ticks.Idle),
		Saving:   fmt.Sprintf("up to %.0f timer interrupts a second; fewer if threads share a vCPU", f.Ticks.PerSecond*float64(f.CPUs-1)/float64(f.CPUs)),
		Risk:     "system calls and exceptions cost more on these vCPUs; vCPU 0 does the kernel's periodic work for all",
		Settings: []change.Setting{{Kind: change.Argument, Name: "nohz_full=" + list}},
	}
}

func nmiWatchdog(_ Input, f *guest.Facts) *Advice {
	if !f.NMIWatchdog {
		return nil
	}
	return &Advice{
		Title:    "no NMI watchdog in a guest",
		Reason:   "the NMI watchdog uses a performance counter, which the host emulates: each write of the counter and each NMI is an exit; also, it reports a vCPU that only waits for a processor as locked up",
		Evidence: "kernel.nmi_watchdog is 1",
		Saving:   notMeasured,
		Risk:     "the guest no longer reports a vCPU that hangs with interrupts off",
		Settings: []change.Setting{{Kind: change.Sysctl, Name: "kernel.nmi_watchdog", Value: "0"}},
	}
}

func vcpus(in Input, f *guest.Facts) *Advice {
	if f.Steal < stolen {
		return nil
	}
	return &Advice{
		Title:    "give the VM fewer vCPUs, or dedicated processors",
		Reason:   "its vCPUs are ready to run and wait for the host's processors; a waiting vCPU may hold a lock that others need",
		Evidence: fmt.Sprintf("steal %.1f %% of the time of %d vCPUs", f.Steal, f.CPUs),
		Saving:   "up to that time; " + notMeasured,
		Risk:     "fewer vCPUs: less parallel work even if the host has free processors; dedicated processors: fewer VMs on a node",
		Undo:     "restore the definition of the virtual machine",
		Commands: []string{"in KubeVirt: spec.template.spec.domain.cpu.dedicatedCpuPlacement: true, or fewer cores (`stargate-tune advise --vm FILE` prints the patch)"},
	}
}
