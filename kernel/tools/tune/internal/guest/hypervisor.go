// SPDX-License-Identifier: Apache-2.0

package guest

import "stargate/tune/internal/system"

// KVM is the signature of KVM in a guest.
const KVM = "KVMKVMKVM"

// realtime is the hint that each vCPU has a processor of its own (KVM_HINTS_REALTIME).
const hintDedicated = 1

// feature is a paravirtual feature of KVM: bits of its CPUID leaf, and how to detect that the guest
// does not use it.
type feature struct {
	name  string
	bits  uint32
	idle  func(*Facts) bool // the guest does not use it
	cause string            // and why, as far as can be told
}

var features = []feature{
	{"kvm-clock", 1<<0 | 1<<3, func(f *Facts) bool { return f.Has("no-kvmclock") || !f.clockIn("kvm-clock") },
		"the kernel was started without it"},
	{"async-page-faults", 1<<4 | 1<<14, func(f *Facts) bool { return f.Has("no-kvmapf") }, "argument no-kvmapf"},
	{"steal-time", 1 << 5, func(f *Facts) bool { return f.Has("no-steal-acc") }, "argument no-steal-acc"},
	{"pv-eoi", 1 << 6, nil, ""},
	{"pv-unhalt", 1 << 7, func(f *Facts) bool { return f.Has("nopvspin") }, "argument nopvspin"},
	{"pv-tlb-flush", 1 << 9, nil, ""},
	{"pv-ipi", 1 << 11, nil, ""},
	{"poll-control", 1 << 12, func(f *Facts) bool { return f.Idle.Governor != "haltpoll" && f.Idle.Driver != "haltpoll" },
		"no haltpoll driver is in use"},
	{"pv-sched-yield", 1 << 13, nil, ""},
}

func (f *Facts) clockIn(name string) bool {
	for _, one := range f.Clock.Available {
		if one == name {
			return true
		}
	}
	return f.Clock.Current == name
}

func (f *Facts) hypervisor(sys system.System) {
	signature, bits, hints := sys.Hypervisor()
	f.Hypervisor = signature
	f.Dedicated = signature == KVM && hints&hintDedicated != 0
	if signature != KVM {
		if signature == "" {
			f.missing("this machine has no hypervisor, so it is not a guest")
		} else {
			f.missing("the hypervisor is " + signature + " and not KVM: its features are unknown")
		}
		return
	}
	for _, one := range features {
		if bits&one.bits == 0 {
			continue
		}
		f.Offered = append(f.Offered, one.name)
		switch {
		case f.Has("nopv"):
			f.Unused = append(f.Unused, one.name+": argument nopv")
		case one.idle != nil && one.idle(f):
			f.Unused = append(f.Unused, one.name+": "+one.cause)
		}
	}
}
