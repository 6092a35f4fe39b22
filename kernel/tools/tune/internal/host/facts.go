// SPDX-License-Identifier: Apache-2.0

// Package host measures, on a host with KVM, why each virtual machine exits and what wakes it.
package host

// Facts is the result of a measurement on a host. The keys of its JSON are a stable interface.
type Facts struct {
	Kind    string  `json:"kind"` // "host"
	Kernel  string  `json:"kernel"`
	Seconds float64 `json:"seconds"`
	// Own is the processor time that the measurement itself took, in percent of one processor.
	Own     float64  `json:"own_processor_percent"`
	VMs     []VM     `json:"vms"`
	Missing []string `json:"missing"` // a line for each fact that this kernel does not give
}

// VM is a virtual machine. All rates are per second.
type VM struct {
	PID   int     `json:"pid"`
	Name  string  `json:"name"`
	VCPUs int     `json:"vcpus"`
	Exits float64 `json:"exits"`
	// Wakeups ended a halt of a vCPU by the scheduler; Polls ended one without it.
	Wakeups  float64 `json:"wakeups"`
	Polls    float64 `json:"halt_polls_successful"`
	Attempts float64 `json:"halt_polls"`
	// Polled is the processor time that polls took which ended in a halt all the same, in
	// percent.
	Polled   float64 `json:"halt_polls_failed_percent"`
	Injected float64 `json:"injected_interrupts"`
	// Timers counts the interrupts with the vector of Linux' local timer.
	Timers float64 `json:"timer_interrupts"`
	// Steal is the time that vCPUs waited for a processor, in percent of one processor.
	Steal     float64            `json:"steal_percent"`
	Reasons   []Rate             `json:"reasons"`
	Addresses []Address          `json:"addresses"`
	Ports     []Port             `json:"ports"`
	MMIO      []Rate             `json:"mmio"`
	MSRs      []Rate             `json:"msrs"`
	Counters  map[string]float64 `json:"kvm_counters"` // all of KVM's own counters that moved
}

// Rate is how often something happens.
type Rate struct {
	Name      string  `json:"name"`
	PerSecond float64 `json:"per_second"`
}

// Address is where in the guest's code it exits.
type Address struct {
	Address   string  `json:"address"`
	Symbol    string  `json:"symbol,omitempty"`
	Reason    string  `json:"reason"`
	PerSecond float64 `json:"per_second"`
}

// Port is a port that the guest reads or writes.
type Port struct {
	Port      uint64  `json:"port"`
	Direction string  `json:"direction"` // "in" or "out"
	Device    string  `json:"device"`
	PerSecond float64 `json:"per_second"`
}
