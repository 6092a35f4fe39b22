// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"slices"
	"strings"
	"testing"

	"stargate/tune/internal/guest"
	"stargate/tune/internal/host"
)

// quiet returns a guest for which no rule has advice; each case changes a fact of it.
func quiet() (Input, *guest.Facts, *host.VM) {
	g := &guest.Facts{Kind: "guest", Kernel: "6.12.1", Hypervisor: guest.KVM, CPUs: 4,
		Clock:    guest.Clock{Current: "kvm-clock", Available: []string{"kvm-clock", "tsc", "hpet", "acpi_pm"}, InvariantTSC: true},
		Ticks:    guest.Ticks{HZ: 250, Stops: true, CanFull: true, PerSecond: 20, Idle: 99},
		Idle:     guest.Idle{Driver: "none", Governor: "menu", CanHaltpoll: true},
		Console:  guest.Console{Names: []string{"tty0"}, Level: 7},
		Disks:    []guest.Disk{{Name: "vda", Driver: "virtio_blk", Scheduler: "none", Schedulers: []string{"none", "mq-deadline"}, Queues: 4}},
		Networks: []guest.Network{{Name: "eth0", Driver: "virtio_net", RxQueues: 4, TxQueues: 4, TSOMax: 65536, GSOMax: 65536}},
		Mounts:   []guest.Mount{{Path: "/mnt", Type: "nfs4", Device: "0:50", Readahead: 15360}},
	}
	h := &host.Facts{Kind: "host", VMs: []host.VM{{Name: "one", VCPUs: 2, Exits: 1000}}}
	return Input{Guest: g, Host: h}, g, &h.VMs[0]
}

// change to the quiet guest, and whether the rule then gives advice
type try struct {
	what    string
	speaks  bool
	change  func(in *Input, g *guest.Facts, vm *host.VM)
	setting string // the advised setting, as apply prints it
}

var tries = map[string][]try{
	"scheduler": {
		{"mq-deadline", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Disks[0].Scheduler = "mq-deadline" }, "/sys/block/vda/queue/scheduler = none"},
		{"bfq on virtio-scsi", true, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Disks[0].Scheduler, g.Disks[0].Driver, g.Disks[0].Name = "bfq", "virtio_scsi", "sda"
		}, "/sys/block/sda/queue/scheduler = none"},
		{"a disk that is not virtual", false, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Disks[0].Scheduler, g.Disks[0].Driver = "mq-deadline", "nvme"
		}, ""},
		{"a kernel without none", false, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Disks[0].Scheduler, g.Disks[0].Schedulers = "mq-deadline", []string{"mq-deadline"}
		}, ""},
	},
	"clock": {
		{"ACPI timer", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Clock.Current = "acpi_pm" },
			"/sys/devices/system/clocksource/clocksource0/current_clocksource = kvm-clock"},
		{"HPET, no kvm-clock", true, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Clock.Current, g.Clock.Available = "hpet", []string{"hpet", "tsc"}
		}, "/sys/devices/system/clocksource/clocksource0/current_clocksource = tsc"},
		{"nothing better", true, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Clock.Current, g.Clock.Available = "hpet", []string{"hpet"}
		}, ""},
		{"tsc", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Clock.Current = "tsc" }, ""},
		{"unknown", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Clock.Current = "" }, ""},
	},
	"pm-timer": {
		{"the watchdog reads the ACPI timer", true, func(_ *Input, g *guest.Facts, vm *host.VM) {
			g.Clock.Current = "tsc"
			vm.Ports = []host.Port{{Port: 0x608, Direction: "in", Device: host.PortDevice(0x608), PerSecond: 4}}
		}, "kernel argument tsc=reliable"},
		{"tsc=reliable is already set", false, func(_ *Input, g *guest.Facts, vm *host.VM) {
			g.Clock.Current, g.Arguments = "tsc", []string{"tsc=reliable"}
			vm.Ports = []host.Port{{Port: 0x608, Device: host.PortDevice(0x608), PerSecond: 4}}
		}, ""},
		{"the counter is not invariant", false, func(_ *Input, g *guest.Facts, vm *host.VM) {
			g.Clock.Current, g.Clock.InvariantTSC = "tsc", false
			vm.Ports = []host.Port{{Port: 0x608, Device: host.PortDevice(0x608), PerSecond: 4}}
		}, ""},
		{"without the host's measurement", false, func(in *Input, g *guest.Facts, _ *host.VM) {
			g.Clock.Current, in.Host = "tsc", nil
		}, ""},
	},
	"features": {
		{"turned off", true, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Arguments, g.Unused = []string{"no-steal-acc"}, []string{"steal-time: argument no-steal-acc"}
		}, ""},
		{"the hypervisor does not offer it", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Arguments = []string{"no-steal-acc"} }, ""},
	},
	"haltpoll": {
		{"dedicated by the operator", true, func(in *Input, _ *guest.Facts, _ *host.VM) { in.Dedicated = true }, "kernel argument cpuidle_haltpoll.force=1"},
		{"dedicated by the hint", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Dedicated = true }, "kernel argument cpuidle_haltpoll.force=1"},
		{"shared", false, func(*Input, *guest.Facts, *host.VM) {}, ""},
		{"dedicated, but it waits", false, func(in *Input, g *guest.Facts, _ *host.VM) { in.Dedicated, g.Steal = true, 3 }, ""},
		{"in use", false, func(in *Input, g *guest.Facts, _ *host.VM) { in.Dedicated, g.Idle.Driver = true, "haltpoll" }, ""},
		{"not in this kernel", false, func(in *Input, g *guest.Facts, _ *host.VM) { in.Dedicated, g.Idle.CanHaltpoll = true, false }, ""},
	},
	"haltpoll-shared": {
		{"forced", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Arguments = []string{"cpuidle_haltpoll.force=Y"} }, ""},
		{"idle=poll", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Arguments = []string{"idle=poll"} }, ""},
		{"forced off", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Arguments = []string{"cpuidle_haltpoll.force=0"} }, ""},
		{"dedicated", false, func(in *Input, g *guest.Facts, _ *host.VM) {
			in.Dedicated, g.Arguments = true, []string{"cpuidle_haltpoll.force=Y"}
		}, ""},
	},
	"ticks": {
		{"nohz=off while idle", true, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Ticks.Stops, g.Ticks.PerSecond, g.Arguments = false, 1000, []string{"nohz=off"}
		}, ""},
		{"nohz=off while busy", false, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Ticks.Stops, g.Ticks.PerSecond, g.Ticks.Idle = false, 1000, 10
		}, ""},
		{"it stops", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Ticks.PerSecond = 1000 }, ""},
	},
	"nohz-full": {
		{"busy and dedicated", true, func(in *Input, g *guest.Facts, _ *host.VM) {
			in.Dedicated, g.Ticks.Idle, g.Ticks.PerSecond = true, 5, 1000
		}, "kernel argument nohz_full=1-3"},
		{"busy and shared", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Ticks.Idle, g.Ticks.PerSecond = 5, 1000 }, ""},
		{"idle and dedicated", false, func(in *Input, g *guest.Facts, _ *host.VM) { in.Dedicated, g.Ticks.PerSecond = true, 1000 }, ""},
		{"two vCPUs", false, func(in *Input, g *guest.Facts, _ *host.VM) {
			in.Dedicated, g.Ticks.Idle, g.Ticks.PerSecond, g.CPUs = true, 5, 1000, 2
		}, ""},
		{"nohz_full is already set", false, func(in *Input, g *guest.Facts, _ *host.VM) {
			in.Dedicated, g.Ticks.Idle, g.Ticks.PerSecond, g.Ticks.Full = true, 5, 1000, "1-3"
		}, ""},
	},
	"nmi-watchdog": {
		{"on", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.NMIWatchdog = true }, "sysctl kernel.nmi_watchdog = 0"},
		{"off", false, func(*Input, *guest.Facts, *host.VM) {}, ""},
	},
	"serial-console": {
		{"busy", true, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Console.Names, g.Console.SerialBytes = []string{"tty0", "ttyS0"}, 900
		}, "sysctl kernel.printk = 4 4 1 7"},
		{"quiet", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Console.Names = []string{"ttyS0"} }, ""},
		{"low level", false, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Console.Names, g.Console.SerialBytes, g.Console.Level = []string{"ttyS0"}, 900, 4
		}, ""},
		{"no serial console", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Console.SerialBytes = 900 }, ""},
	},
	"irq-affinity": {
		{"all on one vCPU", true, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Interrupts = []guest.Interrupt{{Number: 25, Name: "virtio0-input.0", PerSecond: 900, Effective: "1"},
				{Number: 26, Name: "virtio0-input.1", PerSecond: 900, Effective: "1"}}
		}, ""},
		{"spread", false, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Interrupts = []guest.Interrupt{{Number: 25, Name: "virtio0-input.0", PerSecond: 900, Effective: "1"},
				{Number: 26, Name: "virtio0-input.1", PerSecond: 900, Effective: "2"}}
		}, ""},
		{"one busy interrupt", false, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Interrupts = []guest.Interrupt{{Number: 25, Name: "virtio0-input.0", PerSecond: 900, Effective: "1"}}
		}, ""},
	},
	"napi-defer": {
		{"busy", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Networks[0].Interrupts = 20000 }, "/sys/class/net/eth0/napi_defer_hard_irqs = 2"},
		{"idle", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Networks[0].Interrupts = 100 }, ""},
		{"the value is already set", false, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Networks[0].Interrupts, g.Networks[0].DeferIRQs = 20000, 2
		}, ""},
		{"no such setting", false, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Networks[0].Interrupts, g.Networks[0].DeferIRQs = 20000, -1
		}, ""},
		{"another card", false, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Networks[0].Interrupts, g.Networks[0].Driver = 20000, "mlx5_core"
		}, ""},
	},
	"big-tcp": {
		{"the driver can", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Networks[0].TSOMax = 524280 }, ""},
		{"the sizes are already set", false, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.Networks[0].TSOMax, g.Networks[0].GSOMax = 524280, 185000
		}, ""},
		{"the driver cannot", false, func(*Input, *guest.Facts, *host.VM) {}, ""},
	},
	"readahead": {
		{"128 KiB", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Mounts[0].Readahead = 128 }, "/sys/class/bdi/0:50/read_ahead_kb = 1024"},
		{"enough", false, func(*Input, *guest.Facts, *host.VM) {}, ""},
		{"no such mount", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Mounts = nil }, ""},
	},
	"emulated-disk": {
		{"IDE", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Disks[0].Driver = "ata_piix" }, ""},
		{"SATA", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Disks[0].Driver = "ahci" }, ""},
		{"virtio-scsi", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Disks[0].Driver = "virtio_scsi" }, ""},
	},
	"emulated-network": {
		{"e1000", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Networks[0].Driver = "e1000" }, ""},
		{"rtl8139", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Networks[0].Driver = "8139cp" }, ""},
		{"virtio", false, func(*Input, *guest.Facts, *host.VM) {}, ""},
		{"a passed-through card", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Networks[0].Driver = "mlx5_core" }, ""},
	},
	"queues": {
		{"one network queue", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Networks[0].RxQueues = 1 }, ""},
		{"one disk queue", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Disks[0].Queues = 1 }, ""},
		{"as many as vCPUs", false, func(*Input, *guest.Facts, *host.VM) {}, ""},
		{"eight of 32", false, func(_ *Input, g *guest.Facts, _ *host.VM) {
			g.CPUs, g.Networks[0].RxQueues, g.Disks[0].Queues = 32, 8, 8
		}, ""},
	},
	"vcpus": {
		{"steal", true, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Steal = 20 }, ""},
		{"little steal", false, func(_ *Input, g *guest.Facts, _ *host.VM) { g.Steal = 2 }, ""},
	},
	"ports": {
		{"serial port", true, func(_ *Input, _ *guest.Facts, vm *host.VM) {
			vm.Ports = []host.Port{{Port: 0x3f8, Direction: "out", Device: host.PortDevice(0x3f8), PerSecond: 300}}
		}, ""},
		{"seldom", false, func(_ *Input, _ *guest.Facts, vm *host.VM) {
			vm.Ports = []host.Port{{Port: 0x3f8, Direction: "out", PerSecond: 1}}
		}, ""},
	},
	"halt-polls": {
		{"in vain", true, func(_ *Input, _ *guest.Facts, vm *host.VM) { vm.Polled = 12 }, ""},
		{"successful", false, func(_ *Input, _ *guest.Facts, vm *host.VM) { vm.Polled, vm.Polls = 1, 1000 }, ""},
	},
	"waiting": {
		{"steal", true, func(_ *Input, _ *guest.Facts, vm *host.VM) { vm.Steal = 30 }, ""},
		{"little steal", false, func(_ *Input, _ *guest.Facts, vm *host.VM) { vm.Steal = 3 }, ""},
	},
	"timers": {
		{"HZ=1000", true, func(_ *Input, _ *guest.Facts, vm *host.VM) { vm.Timers = 2000 }, ""},
		{"few", false, func(_ *Input, _ *guest.Facts, vm *host.VM) { vm.Timers = 100 }, ""},
	},
}

func find(all []Advice, name string) *Advice {
	for i := range all {
		if all[i].Rule == name {
			return &all[i]
		}
	}
	return nil
}

func TestEachRuleBothWays(t *testing.T) {
	for _, name := range Rules() {
		speaks, silent := 0, 0
		for _, one := range tries[name] {
			t.Run(name+"/"+one.what, func(t *testing.T) {
				in, g, vm := quiet()
				one.change(&in, g, vm)
				said := find(On(in), name)
				if (said != nil) != one.speaks {
					t.Fatalf("advice: %+v, advice expected: %v", said, one.speaks)
				}
				if said == nil {
					return
				}
				for part, text := range map[string]string{"title": said.Title, "reason": said.Reason, "evidence": said.Evidence,
					"saving": said.Saving, "risk": said.Risk, "undo": said.Undo} {
					if text == "" || strings.Contains(text, "\n") || strings.Contains(text, "%!") {
						t.Errorf("%s is %q", part, text)
					}
				}
				if len(said.Settings)+len(said.Commands) == 0 {
					t.Error("the advice has neither settings nor commands")
				}
				var settings []string
				for _, setting := range said.Settings {
					settings = append(settings, setting.String())
					if setting.Rule != name {
						t.Errorf("setting %s comes from %q", setting, setting.Rule)
					}
				}
				if one.setting != "" && !slices.Contains(settings, one.setting) || one.setting == "" && len(settings) > 0 {
					t.Errorf("settings are %q, %q expected", settings, one.setting)
				}
			})
			if one.speaks {
				speaks++
			} else {
				silent++
			}
		}
		if speaks == 0 || silent == 0 {
			t.Errorf("rule %s has %d cases in which it gives advice, and %d in which it does not", name, speaks, silent)
		}
	}
}

func TestAQuietGuestGetsNoAdvice(t *testing.T) {
	in, _, _ := quiet()
	if said := On(in); len(said) != 0 {
		t.Errorf("%+v", said)
	}
	in, g, _ := quiet()
	g.Hypervisor, g.NMIWatchdog = "", true
	if said := On(in); len(said) != 0 {
		t.Errorf("no guest: %+v", said)
	}
	if said := On(Input{}); len(said) != 0 {
		t.Errorf("nothing: %+v", said)
	}
}

// Kernel 6.13 introduced IRQ suspension.
func TestSuspensionByKernel(t *testing.T) {
	for kernel, there := range map[string]bool{"6.1.0-9": false, "6.12.99": false, "6.13.0": true, "7.2.12+deb13": true, "": false, "x": false} {
		in, g, _ := quiet()
		g.Kernel, g.Networks[0].Interrupts = kernel, 20000
		if said := find(On(in), "napi-defer"); (len(said.Commands) > 0) != there {
			t.Errorf("kernel %q: %q", kernel, said.Commands)
		}
	}
}

const old = `{"kind": "VirtualMachine", "spec": {"template": {"spec": {"domain": {
	"cpu": {"cores": 4}, "devices": {
	"disks": [{"name": "root", "disk": {"bus": "sata"}}, {"name": "seed", "cdrom": {"bus": "sata"}}, {"name": "data", "disk": {"bus": "virtio"}}],
	"interfaces": [{"name": "default", "model": "e1000"}]}}}}}}`

func TestPatch(t *testing.T) {
	said, steps, err := Patch([]byte(old), true)
	want := `[{"op":"test","path":"/spec/template/spec/domain/devices/disks/0/disk/bus","value":"sata"},` +
		`{"op":"replace","path":"/spec/template/spec/domain/devices/disks/0/disk/bus","value":"virtio"},` +
		`{"op":"test","path":"/spec/template/spec/domain/devices/interfaces/0/model","value":"e1000"},` +
		`{"op":"replace","path":"/spec/template/spec/domain/devices/interfaces/0/model","value":"virtio"},` +
		`{"op":"add","path":"/spec/template/spec/domain/devices/networkInterfaceMultiqueue","value":true},` +
		`{"op":"add","path":"/spec/template/spec/domain/devices/blockMultiQueue","value":true},` +
		`{"op":"add","path":"/spec/template/spec/domain/ioThreadsPolicy","value":"auto"},` +
		`{"op":"add","path":"/spec/template/spec/domain/cpu/dedicatedCpuPlacement","value":true}]`
	if got := Text(steps); err != nil || got != want || len(said) != 6 {
		t.Errorf("%d, %v\n%s\nshould be\n%s", len(said), err, got, want)
	}
	for what, object := range map[string]string{
		"tuned": `{"kind": "VirtualMachine", "spec": {"template": {"spec": {"domain": {"cpu": {"cores": 4, "dedicatedCpuPlacement": true},
			"ioThreadsPolicy": "shared", "devices": {"blockMultiQueue": true, "networkInterfaceMultiqueue": true,
			"disks": [{"disk": {"bus": "virtio"}}, {"disk": {"bus": "virtio"}}], "interfaces": [{"model": "virtio"}]}}}}}}`,
		"one vCPU, one disk": `{"kind": "VirtualMachine", "spec": {"template": {"spec": {"domain": {"cpu": {"dedicatedCpuPlacement": true},
			"devices": {"disks": [{"disk": {"bus": "virtio"}}], "interfaces": [{}]}}}}}}`,
	} {
		if said, steps, err := Patch([]byte(object), true); err != nil || len(said) != 0 || Text(steps) != "[]" {
			t.Errorf("%s: %+v, %s, %v", what, said, Text(steps), err)
		}
	}
	if _, steps, _ := Patch([]byte(`{"kind": "VirtualMachine", "spec": {"template": {"spec": {"domain": {"devices": {}}}}}}`), true); Text(steps) !=
		`[{"op":"add","path":"/spec/template/spec/domain/cpu","value":{"dedicatedCpuPlacement":true}}]` {
		t.Errorf("no cpu: %s", Text(steps))
	}
	for _, bad := range []string{"", "{", "[]", `{"kind": "Pod"}`, `{"kind": "VirtualMachine"}`, `{"kind": "VirtualMachine", "spec": 1}`} {
		if _, _, err := Patch([]byte(bad), false); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
