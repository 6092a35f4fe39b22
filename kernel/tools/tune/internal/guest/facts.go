// SPDX-License-Identifier: Apache-2.0

// Package guest runs in a virtual machine. It collects the facts that decide how often the machine
// exits to its hypervisor and how often it wakes up.
package guest

// Facts is the result of a measurement in a guest. The keys of its JSON are a stable interface.
type Facts struct {
	Kind         string      `json:"kind"` // "guest"
	Kernel       string      `json:"kernel"`
	Distribution string      `json:"distribution"`
	Seconds      float64     `json:"seconds"`
	Hypervisor   string      `json:"hypervisor"`
	Offered      []string    `json:"offered"`
	Unused       []string    `json:"unused"`
	Dedicated    bool        `json:"dedicated"` // the hypervisor's hint that each vCPU has its own processor
	CPUs         int         `json:"cpus"`
	Steal        float64     `json:"steal_percent"`
	Arguments    []string    `json:"arguments"`
	Clock        Clock       `json:"clock"`
	Ticks        Ticks       `json:"ticks"`
	Idle         Idle        `json:"idle"`
	Console      Console     `json:"console"`
	NMIWatchdog  bool        `json:"nmi_watchdog"`
	Disks        []Disk      `json:"disks"`
	Networks     []Network   `json:"networks"`
	Mounts       []Mount     `json:"mounts"`
	Interrupts   []Interrupt `json:"interrupts"`
	Missing      []string    `json:"missing"` // a line for each fact that this kernel does not report
}

// Clock describes the clock source.
type Clock struct {
	Current   string   `json:"current"`
	Available []string `json:"available"`
	// InvariantTSC: the processor's counter has a constant rate, and does not stop in deep
	// sleep.
	InvariantTSC bool `json:"invariant_tsc"`
}

// Ticks are the timer interrupts of the kernel.
type Ticks struct {
	HZ        int     `json:"hz"`    // 0: the kernel's configuration was not found
	Stops     bool    `json:"stops"` // the tick stops on an idle processor
	CanFull   bool    `json:"can_nohz_full"`
	Full      string  `json:"nohz_full"` // processors without a tick
	PerSecond float64 `json:"timer_interrupts_per_second"`
	// Idle is the share of time in which the machine was idle, in percent.
	Idle float64 `json:"idle_percent"`
}

// Idle describes how an idle processor waits.
type Idle struct {
	Driver    string   `json:"driver"`
	Governor  string   `json:"governor"`
	Governors []string `json:"governors"`
	// CanHaltpoll: this kernel has the driver that polls before a halt.
	CanHaltpoll bool `json:"can_haltpoll"`
}

// Console describes the output of kernel messages.
type Console struct {
	Names []string `json:"names"`
	Level int64    `json:"level"` // messages below this level appear there
	// SerialBytes a second went through emulated serial ports; each byte is an exit or more.
	SerialBytes float64 `json:"serial_bytes_per_second"`
}

// Disk is a block device on a bus.
type Disk struct {
	Name       string   `json:"name"`
	Driver     string   `json:"driver"`
	Scheduler  string   `json:"scheduler"`
	Schedulers []string `json:"schedulers"`
	Queues     int      `json:"queues"`
}

// Network is a network device on a bus.
type Network struct {
	Name         string  `json:"name"`
	Driver       string  `json:"driver"`
	RxQueues     int     `json:"rx_queues"`
	TxQueues     int     `json:"tx_queues"`
	DeferIRQs    int64   `json:"napi_defer_hard_irqs"` // -1: the kernel has no such setting
	FlushTimeout int64   `json:"gro_flush_timeout_ns"`
	TSOMax       int64   `json:"tso_max_size"`
	GSOMax       int64   `json:"gso_max_size"`
	Interrupts   float64 `json:"interrupts_per_second"`
}

// Mount is a mount of a file system over a network, or of FUSE.
type Mount struct {
	Path      string `json:"path"`
	Type      string `json:"type"`
	Device    string `json:"device"` // its name in /sys/class/bdi
	Readahead int64  `json:"read_ahead_kib"`
}

// Interrupt is a device's interrupt.
type Interrupt struct {
	Number    int     `json:"number"`
	Name      string  `json:"name"`
	PerSecond float64 `json:"per_second"`
	Allowed   string  `json:"allowed"`   // processors
	Effective string  `json:"effective"` // the processors that actually handle it
}

// Has reports whether the kernel was started with an argument, given as a complete word or as its
// name.
func (f *Facts) Has(argument string) bool {
	_, there := f.Argument(argument)
	return there
}

// Argument returns the last value of a kernel argument.
func (f *Facts) Argument(name string) (value string, there bool) {
	for _, word := range f.Arguments {
		key, rest, _ := cut(word)
		if word == name || key == name {
			value, there = rest, true
		}
	}
	return value, there
}
