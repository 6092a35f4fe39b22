// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"
	"time"

	"stargate/tune/internal/system"
)

// shown is the number of addresses, ports and registers that the report has for each VM.
const shown = 20

// localTimer is the vector of Linux' local timer.
const localTimer = 0xec

// Collect measures all VMs between two moments. pause waits until the second one, and returns the
// seconds in between.
func Collect(sys system.System, symbols *Symbols, pause func() float64) *Facts {
	began := ownTime()
	// Lists are never nil: JSON has [] and not null.
	f := &Facts{Kind: "host", Kernel: sys.Release(), VMs: []VM{}, Missing: []string{}}
	vms := machines(sys)
	if !sys.Exists(debugfs) {
		f.Missing = append(f.Missing, "KVM's counters are unknown: there is no "+debugfs+
			": modprobe kvm, mount -t debugfs debugfs /sys/kernel/debug")
	}
	t, missing := start(sys)
	f.Missing = append(f.Missing, missing...)
	type moment struct {
		counters map[string]uint64
		waited   uint64
	}
	before := map[int]moment{}
	for _, one := range vms {
		waited, _ := one.waited(sys)
		before[one.pid] = moment{one.counters(sys), waited}
	}
	f.Seconds = pause()
	seconds := f.Seconds
	var counted map[string][]entry
	var names map[uint64]string
	if t != nil {
		defer t.stop()
		names = reasonNames(sys, t.at)
		var dropped map[string]uint64
		counted, dropped = t.read()
		for _, one := range triggers {
			if n := dropped[one.name]; n > 0 {
				f.Missing = append(f.Missing, fmt.Sprintf("%s: the kernel's table was full, and missed %d events", one.name, n))
			}
		}
	}
	for _, one := range vms {
		waited, vcpus := one.waited(sys)
		vm := VM{PID: one.pid, Name: one.name, VCPUs: vcpus, Counters: map[string]float64{},
			Addresses: []Address{}, Ports: []Port{}}
		for name, after := range one.counters(sys) {
			if was := before[one.pid].counters[name]; after > was {
				vm.Counters[name] = float64(after-was) / seconds
			}
		}
		vm.Exits, vm.Wakeups = vm.Counters["exits"], vm.Counters["halt_wakeup"]
		vm.Polls, vm.Attempts = vm.Counters["halt_successful_poll"], vm.Counters["halt_attempted_poll"]
		vm.Polled = vm.Counters["halt_poll_fail_ns"] / 1e7
		vm.Injected = vm.Counters["irq_injections"]
		if was := before[one.pid].waited; waited > was {
			vm.Steal = float64(waited-was) / seconds / 1e7
		}
		vm.events(one, counted, names, symbols, seconds)
		f.VMs = append(f.VMs, vm)
	}
	f.Own = 100 * (ownTime() - began).Seconds() / seconds
	return f
}

// events adds the counts of the kernel's histograms to a VM.
func (vm *VM) events(m machine, counted map[string][]entry, names map[uint64]string, symbols *Symbols, seconds float64) {
	ours := map[uint64]bool{}
	for _, thread := range m.threads {
		ours[uint64(thread)] = true
	}
	reason := func(number uint64) string {
		if name, known := names[number]; known {
			return name
		}
		return fmt.Sprintf("reason %d", number)
	}
	sums := map[string]map[string]float64{}
	add := func(kind, name string, hits uint64) {
		if sums[kind] == nil {
			sums[kind] = map[string]float64{}
		}
		sums[kind][name] += float64(hits) / seconds
	}
	addresses := map[Address]float64{}
	ports := map[Port]float64{}
	each := func(kind string, use func(keys map[string]uint64, hits uint64)) {
		for _, one := range counted[kind] {
			if ours[one.keys["common_pid"]] {
				use(one.keys, one.hits)
			}
		}
	}
	each("reasons", func(keys map[string]uint64, hits uint64) { add("reasons", reason(keys["exit_reason"]), hits) })
	each("mmio", func(keys map[string]uint64, hits uint64) {
		direction := "read"
		if keys["type"] == 2 {
			direction = "written"
		} else if keys["type"] == 0 {
			return // the kernel counts an unanswered read, and counts it again with its answer
		}
		add("mmio", fmt.Sprintf("0x%x, %s", keys["gpa"], direction), hits)
	})
	each("msrs", func(keys map[string]uint64, hits uint64) { add("msrs", msrName(keys["ecx"], keys["write"] == 1), hits) })
	each("addresses", func(keys map[string]uint64, hits uint64) {
		one := Address{Address: fmt.Sprintf("0x%x", keys["guest_rip"]), Symbol: symbols.Name(keys["guest_rip"]),
			Reason: reason(keys["exit_reason"])}
		if one.Symbol != "" {
			one.Address = "" // adds all addresses of a function
		}
		addresses[one] += float64(hits) / seconds
	})
	each("ports", func(keys map[string]uint64, hits uint64) {
		one := Port{Port: keys["port"], Direction: "in", Device: PortDevice(keys["port"])}
		if keys["rw"] == 1 {
			one.Direction = "out"
		}
		ports[one] += float64(hits) / seconds
	})
	var injected float64
	each("vectors", func(keys map[string]uint64, hits uint64) {
		injected += float64(hits) / seconds
		if keys["vec"] == localTimer || keys["vector"] == localTimer || keys["irq"] == localTimer {
			vm.Timers += float64(hits) / seconds
		}
	})
	if vm.Injected == 0 {
		vm.Injected = injected
	}
	vm.Reasons, vm.MMIO, vm.MSRs = rates(sums["reasons"], 0), rates(sums["mmio"], shown), rates(sums["msrs"], shown)
	if vm.Exits == 0 { // without KVM's counters
		for _, one := range vm.Reasons {
			vm.Exits += one.PerSecond
		}
	}
	for one, rate := range addresses {
		one.PerSecond = rate
		vm.Addresses = append(vm.Addresses, one)
	}
	for one, rate := range ports {
		one.PerSecond = rate
		vm.Ports = append(vm.Ports, one)
	}
	slices.SortFunc(vm.Addresses, func(a, b Address) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(a.Symbol, b.Symbol),
			cmp.Compare(a.Address, b.Address), cmp.Compare(a.Reason, b.Reason))
	})
	slices.SortFunc(vm.Ports, func(a, b Port) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Direction, b.Direction))
	})
	vm.Addresses = vm.Addresses[:min(len(vm.Addresses), shown)]
	vm.Ports = vm.Ports[:min(len(vm.Ports), shown)]
}

// rates sorts by rate, the highest first; most is the number of lines, or 0 for all.
func rates(sums map[string]float64, most int) []Rate {
	all := []Rate{}
	for name, rate := range sums {
		all = append(all, Rate{name, rate})
	}
	slices.SortFunc(all, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(a.Name, b.Name))
	})
	if most > 0 && len(all) > most {
		all = all[:most]
	}
	return all
}

func ownTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
