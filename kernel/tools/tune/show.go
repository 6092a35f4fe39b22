// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"stargate/tune/internal/advice"
	"stargate/tune/internal/guest"
	"stargate/tune/internal/host"
)

// table prints aligned columns; write receives the cells of a row.
func table(out io.Writer, indent string, write func(row func(cells ...any))) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	write(func(cells ...any) {
		text := make([]string, len(cells))
		for i, cell := range cells {
			text[i] = fmt.Sprint(cell)
		}
		fmt.Fprintln(w, indent+strings.Join(text, "\t"))
	})
	_ = w.Flush()
}

func perSecond(rate float64) string {
	if rate < 10 {
		return fmt.Sprintf("%.1f", rate)
	}
	return fmt.Sprintf("%.0f", rate)
}

func showHost(out io.Writer, f *host.Facts) {
	fmt.Fprintf(out, "kernel %s, %.1f s, all rates per second; the measurement took %.2f %% of a processor\n", f.Kernel, f.Seconds, f.Own)
	if len(f.VMs) == 0 {
		fmt.Fprintln(out, "no VM of KVM runs here")
	}
	for i := range f.VMs {
		vm := &f.VMs[i]
		fmt.Fprintf(out, "\nVM %s (process %d, %d vCPUs)\n", vm.Name, vm.PID, vm.VCPUs)
		table(out, "  ", func(row func(...any)) {
			row("exits", perSecond(vm.Exits))
			row("wake-ups", perSecond(vm.Wakeups))
			row("halt polls", perSecond(vm.Attempts), fmt.Sprintf("%s successful; the failed ones took %.1f %% of a processor", perSecond(vm.Polls), vm.Polled))
			row("injected interrupts", perSecond(vm.Injected), perSecond(vm.Timers)+" of the local timer")
			row("steal", fmt.Sprintf("%.1f %%", vm.Steal))
		})
		section := func(title string, rates []host.Rate) {
			if len(rates) == 0 {
				return
			}
			fmt.Fprintln(out, "  "+title)
			table(out, "    ", func(row func(...any)) {
				for _, one := range rates {
					row(one.Name, perSecond(one.PerSecond))
				}
			})
		}
		section("exits by reason", vm.Reasons)
		if len(vm.Addresses) > 0 {
			fmt.Fprintln(out, "  guest addresses with the most exits")
			table(out, "    ", func(row func(...any)) {
				for _, one := range vm.Addresses {
					row(one.Address+one.Symbol, one.Reason, perSecond(one.PerSecond))
				}
			})
		}
		if len(vm.Ports) > 0 {
			fmt.Fprintln(out, "  ports")
			table(out, "    ", func(row func(...any)) {
				for _, one := range vm.Ports {
					row(fmt.Sprintf("0x%x", one.Port), one.Direction, one.Device, perSecond(one.PerSecond))
				}
			})
		}
		section("emulated memory", vm.MMIO)
		section("registers (MSR)", vm.MSRs)
	}
	showMissing(out, f.Missing)
}

func showMissing(out io.Writer, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(out, "not measured: "+line)
	}
}

func word(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

func showGuest(out io.Writer, f *guest.Facts) {
	table(out, "", func(row func(...any)) {
		row("kernel", f.Kernel, f.Distribution)
		row("hypervisor", word(f.Hypervisor), "offers "+strings.Join(f.Offered, " "))
		for _, one := range f.Unused {
			row("", "", "not used: "+one)
		}
		row("vCPUs", f.CPUs, fmt.Sprintf("steal %.1f %%, idle %.0f %%, dedicated by the hypervisor's hint: %v", f.Steal, f.Ticks.Idle, f.Dedicated))
		row("clock", word(f.Clock.Current), "available: "+strings.Join(f.Clock.Available, " "))
		row("timer interrupts", perSecond(f.Ticks.PerSecond)+"/s", fmt.Sprintf("HZ %d, tick stops when idle: %v, nohz_full: %s", f.Ticks.HZ, f.Ticks.Stops, orNone(f.Ticks.Full)))
		row("idle", word(f.Idle.Driver), "governor "+word(f.Idle.Governor))
		row("console", strings.Join(f.Console.Names, " "), fmt.Sprintf("level %d, %s bytes/s by serial ports", f.Console.Level, perSecond(f.Console.SerialBytes)))
		row("NMI watchdog", f.NMIWatchdog)
		for _, one := range f.Disks {
			row("disk "+one.Name, one.Driver, fmt.Sprintf("scheduler %s, %d queue(s)", word(one.Scheduler), one.Queues))
		}
		for _, one := range f.Networks {
			row("network "+one.Name, one.Driver, fmt.Sprintf("%d receive and %d transmit queue(s), %s interrupts/s, napi_defer_hard_irqs %d", one.RxQueues, one.TxQueues, perSecond(one.Interrupts), one.DeferIRQs))
		}
		for _, one := range f.Mounts {
			row("mount "+one.Path, one.Type, fmt.Sprintf("readahead %d KiB", one.Readahead))
		}
		for _, one := range f.Interrupts {
			if one.PerSecond >= 1 {
				row(fmt.Sprintf("interrupt %d", one.Number), one.Name, perSecond(one.PerSecond)+"/s on vCPU "+word(one.Effective))
			}
		}
	})
	showMissing(out, f.Missing)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func showAdvice(out io.Writer, all []advice.Advice) {
	if len(all) == 0 {
		fmt.Fprintln(out, "nothing to advise")
	}
	for i, one := range all {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s: %s\n", one.Rule, one.Title)
		for _, part := range [][2]string{{"why", one.Reason}, {"seen", one.Evidence}, {"saves", one.Saving}, {"risk", one.Risk}, {"undo", one.Undo}} {
			fmt.Fprintf(out, "  %-6s %s\n", part[0], part[1])
		}
		for _, setting := range one.Settings {
			fmt.Fprintf(out, "  apply  %s\n", setting)
		}
		for _, line := range one.Commands {
			fmt.Fprintf(out, "  do     %s\n", line)
		}
	}
}
