// SPDX-License-Identifier: Apache-2.0

// Package host runs on a host with KVM. It measures why each virtual machine exits and which events
// wake it.
package host

// Facts is the result of a measurement on a host. The keys of its JSON are a stable interface.
type Facts struct {
	Kind    string  `json:"kind"` // "host"
	Kernel  string  `json:"kernel"`
	Seconds float64 `json:"seconds"`
	// Own is the processor time of the measurement itself, in percent of one processor.
	Own     float64  `json:"own_processor_percent"`
	VMs     []VM     `json:"vms"`
	Missing []string `json:"missing"` // a line for each fact that this kernel does not report
}

// VM is a virtual machine. All rates are per second.
type VM struct {
	PID   int     `json:"pid"`
	Name  string  `json:"name"`
	VCPUs int     `json:"vcpus"`
	Exits float64 `json:"exits"`
	// Wakeups is the rate of halts that ended with a wake-up by the scheduler; Polls is the
	// rate of halts that ended while KVM polled.
	Wakeups  float64 `json:"wakeups"`
	Polls    float64 `json:"halt_polls_successful"`
	Attempts float64 `json:"halt_polls"`
	// Polled is the processor time of polls that still ended in a halt, in percent.
	Polled   float64 `json:"halt_polls_failed_percent"`
	Injected float64 `json:"injected_interrupts"`
	// Timers is the rate of interrupts with the vector of Linux' local timer.
	Timers float64 `json:"timer_interrupts"`
	// Steal is the time that vCPUs waited for a processor, in percent of one processor.
	Steal     float64            `json:"steal_percent"`
	Reasons   []Rate             `json:"reasons"`
	Addresses []Address          `json:"addresses"`
	Ports     []Port             `json:"ports"`
	MMIO      []Rate             `json:"mmio"`
	MSRs      []Rate             `json:"msrs"`
	Counters  map[string]float64 `json:"kvm_counters"` // all counters of KVM that changed
}

// Rate is the rate of an event.
type Rate struct {
	Name      string  `json:"name"`
	PerSecond float64 `json:"per_second"`
}

// Address is an address of the guest's code at which it exits.
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
