// SPDX-License-Identifier: Apache-2.0

// Package advice derives advice from a measurement. Each rule gives its reason, its evidence, the
// expected saving, the risk, and how to undo the change.
package advice

import (
	"stargate/tune/internal/change"
	"stargate/tune/internal/guest"
	"stargate/tune/internal/host"
)

// Place is where the user makes a change.
type Place string

const (
	InGuest Place = "guest"
	OnHost  Place = "host"
	InVM    Place = "vm" // in the definition of the virtual machine
)

// Advice is the result of a rule. The keys of its JSON are a stable interface.
type Advice struct {
	Rule     string           `json:"rule"`
	Where    Place            `json:"where"`
	Title    string           `json:"title"`
	Reason   string           `json:"reason"`
	Evidence string           `json:"evidence"`
	Saving   string           `json:"saving"`
	Risk     string           `json:"risk"`
	Undo     string           `json:"undo"`
	Settings []change.Setting `json:"settings,omitempty"` // settings that apply can make
	Commands []string         `json:"commands,omitempty"` // what the user must do, if apply cannot make the change
}

// Input is all data that rules use. Guest or Host may be nil.
type Input struct {
	Guest *guest.Facts
	Host  *host.Facts
	// Dedicated: each vCPU has a processor of its own, according to the hypervisor's hint or to
	// the user.
	Dedicated bool
}

// rule returns advice, or nothing if it does not apply.
type rule struct {
	name  string
	where Place
	guest func(Input, *guest.Facts) *Advice
	host  func(Input, host.VM) *Advice
}

// NotMeasured is the saving of a rule that nobody has measured.
const notMeasured = "not measured"

// undoByTool says how to undo a change that apply has made.
const undoByTool = "stargate-tune undo"

// Rules returns the names of all rules.
func Rules() (names []string) {
	for _, one := range rules {
		names = append(names, one.name)
	}
	return names
}

// On applies all rules to the input.
func On(in Input) []Advice {
	found := []Advice{}
	if in.Guest != nil && in.Guest.Dedicated {
		in.Dedicated = true
	}
	add := func(one rule, said *Advice) {
		if said == nil {
			return
		}
		said.Rule, said.Where = one.name, one.where
		if said.Undo == "" {
			said.Undo = undoByTool
		}
		for i := range said.Settings {
			said.Settings[i].Rule = one.name
		}
		found = append(found, *said)
	}
	for _, one := range rules {
		if one.guest != nil && in.Guest != nil && in.Guest.Hypervisor != "" {
			add(one, one.guest(in, in.Guest))
		}
		if one.host != nil && in.Host != nil {
			for _, vm := range in.Host.VMs {
				add(one, one.host(in, vm))
			}
		}
	}
	return found
}

var rules = []rule{
	{name: "scheduler", where: InGuest, guest: scheduler},
	{name: "clock", where: InGuest, guest: clock},
	{name: "pm-timer", where: InGuest, guest: pmTimer},
	{name: "features", where: InGuest, guest: features},
	{name: "haltpoll", where: InGuest, guest: haltpoll},
	{name: "haltpoll-shared", where: InGuest, guest: haltpollShared},
	{name: "ticks", where: InGuest, guest: ticks},
	{name: "nohz-full", where: InGuest, guest: nohzFull},
	{name: "nmi-watchdog", where: InGuest, guest: nmiWatchdog},
	{name: "serial-console", where: InGuest, guest: serialConsole},
	{name: "irq-affinity", where: InGuest, guest: irqAffinity},
	{name: "napi-defer", where: InGuest, guest: napiDefer},
	{name: "big-tcp", where: InGuest, guest: bigTCP},
	{name: "readahead", where: InGuest, guest: readahead},
	{name: "emulated-disk", where: InVM, guest: emulatedDisk},
	{name: "emulated-network", where: InVM, guest: emulatedNetwork},
	{name: "queues", where: InVM, guest: queues},
	{name: "vcpus", where: InVM, guest: vcpus},
	{name: "ports", where: InVM, host: ports},
	{name: "halt-polls", where: OnHost, host: haltPolls},
	{name: "waiting", where: OnHost, host: waiting},
	{name: "timers", where: InGuest, host: timers},
}
