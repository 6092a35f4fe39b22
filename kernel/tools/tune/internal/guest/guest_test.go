// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stargate/tune/internal/system"
)

func write(t *testing.T, sys system.System, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(sys.Path(path)), 0o755); err != nil {
		t.Fatal(err)
	}
	if target, ok := strings.CutPrefix(text, "-> "); ok {
		if err := os.Symlink(target, sys.Path(path)); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(sys.Path(path), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// files holds the files of a guest with two network cards and three disks: one on virtio, one on
// emulated IDE, and one on virtio-scsi.
var files = map[string]string{
	"/etc/os-release":                   "PRETTY_NAME=\"x\"\nID=debian\nVERSION_ID=\"13\"\n",
	"/proc/sys/kernel/osrelease":        "6.12.1-amd64\n",
	"/boot/config-6.12.1-amd64":         "CONFIG_NO_HZ_FULL=y\nCONFIG_HZ=250\nCONFIG_HALTPOLL_CPUIDLE=y\n",
	"/cpuid":                            "KVMKVMKVM 0x1020 0x1\n",
	"/proc/cmdline":                     "BOOT_IMAGE=/vmlinuz nohz=off no-steal-acc console=ttyS0,115200\n",
	"/proc/consoles":                    "ttyS0                -W- (EC   p a)    4:64\ntty0                 -WU (E    p  )    4:7\n",
	"/proc/sys/kernel/printk":           "7\t4\t1\t7\n",
	"/proc/sys/kernel/nmi_watchdog":     "1\n",
	"/proc/cpuinfo":                     "processor\t: 0\nflags\t\t: fpu constant_tsc nonstop_tsc hypervisor\n",
	"/sys/devices/system/cpu/online":    "0-1\n",
	"/sys/devices/system/cpu/nohz_full": "(null)\n",
	"/sys/devices/system/clocksource/clocksource0/current_clocksource":   "acpi_pm\n",
	"/sys/devices/system/clocksource/clocksource0/available_clocksource": "kvm-clock tsc acpi_pm \n",
	"/sys/devices/system/cpu/cpuidle/current_driver":                     "none\n",
	"/sys/devices/system/cpu/cpuidle/current_governor":                   "menu\n",
	"/sys/devices/system/cpu/cpuidle/available_governors":                "menu haltpoll \n",
	"/sys/devices/pci0/0000:00:04.0/virtio1/block/vda/queue/scheduler":   "none [mq-deadline] kyber\n",
	"/sys/devices/pci0/0000:00:04.0/virtio1/block/vda/mq/0/cpu_list":     "0, 1\n",
	"/sys/devices/pci0/0000:00:04.0/virtio1/driver":                      "-> ../../../../bus/virtio/drivers/virtio_blk",
	"/sys/block/vda": "-> ../devices/pci0/0000:00:04.0/virtio1/block/vda",
	"/sys/devices/pci0/0000:00:01.1/ata1/host0/target0/0/block/sda/queue/scheduler": "[none] mq-deadline\n",
	"/sys/devices/pci0/0000:00:01.1/ata1/host0/target0/0/driver":                    "-> ../../../../../../../bus/scsi/drivers/sd",
	"/sys/devices/pci0/0000:00:01.1/driver":                                         "-> ../../../bus/pci/drivers/ata_piix",
	"/sys/block/sda":                                                                "-> ../devices/pci0/0000:00:01.1/ata1/host0/target0/0/block/sda",
	"/sys/devices/virtual/block/loop0/queue/scheduler":                              "[none]\n",
	"/sys/block/loop0":                                                              "-> ../devices/virtual/block/loop0",
	"/sys/devices/pci0/0000:00:03.0/virtio0/driver":                                 "-> ../../../../bus/virtio/drivers/virtio_net",
	"/sys/class/net/eth0/device":                                                    "-> ../../../devices/pci0/0000:00:03.0/virtio0",
	"/sys/class/net/eth0/queues/rx-0/rps_cpus":                                      "0\n",
	"/sys/class/net/eth0/queues/tx-0/xps_cpus":                                      "0\n",
	"/sys/class/net/eth0/queues/tx-1/xps_cpus":                                      "0\n",
	"/sys/class/net/eth0/napi_defer_hard_irqs":                                      "0\n",
	"/sys/class/net/eth0/gro_flush_timeout":                                         "0\n",
	"/sys/class/net/lo/queues/rx-0/rps_cpus":                                        "0\n",
	"/links":                                                                        "eth0 65536 65536\n",
	"/proc/irq/25/smp_affinity_list":                                                "0-1\n",
	"/proc/irq/25/effective_affinity_list":                                          "1\n",
	"/sys/class/bdi/0:50/read_ahead_kb":                                             "128\n",
	"/proc/self/mountinfo": "25 1 0:22 / /proc rw - proc proc rw\n" +
		"30 1 0:50 / /mnt/a\\040b rw,relatime shared:1 - virtiofs tag rw\n" +
		"31 1 0:50 / /mnt/again rw - virtiofs tag rw\n" +
		"32 1 0:51 / /mnt/none rw - nfs4 server:/ rw\nrubbish\n",
}

const head = "           CPU0       CPU1       \n"

var first = map[string]string{
	"/proc/interrupts": head + "  4:        100          0   IO-APIC   4-edge      ttyS0\n" +
		" 25:       1000       2000   PCI-MSIX-0000:00:03.0   1-edge      virtio0-input.0\n" +
		"LOC:       5000       5000   Local timer interrupts\nERR:          0\n",
	"/proc/stat":              "cpu  100 0 100 1000 0 0 0 50 0 0\ncpu0 1 1 1 1\n",
	"/proc/tty/driver/serial": "serinfo:1.0 driver revision:\n0: uart:16550A port:000003F8 irq:4 tx:1000 rx:0 RTS|DTR\n",
}

var second = map[string]string{
	"/proc/interrupts": head + "  4:        100          0   IO-APIC   4-edge      ttyS0\n" +
		" 25:       1000       2600   PCI-MSIX-0000:00:03.0   1-edge      virtio0-input.0\n" +
		"LOC:       5500       5500   Local timer interrupts\n",
	"/proc/stat":              "cpu  100 0 100 1160 0 0 0 90 0 0\n",
	"/proc/tty/driver/serial": "0: uart:16550A port:000003F8 irq:4 tx:1800 rx:0\n",
}

func collect(t *testing.T, change map[string]string) *Facts {
	t.Helper()
	sys := system.System{Root: t.TempDir()}
	all := maps.Clone(files)
	maps.Copy(all, first)
	maps.Copy(all, change)
	for path, text := range all {
		if text != "absent" {
			write(t, sys, path, text)
		}
	}
	return Collect(sys, func() float64 {
		for path, text := range second {
			if change[path] != "absent" {
				write(t, sys, path, text)
			}
		}
		return 2
	})
}

func TestCollect(t *testing.T) {
	f := collect(t, nil)
	for _, one := range []struct {
		what      string
		got, want any
	}{
		{"kernel", f.Kernel, "6.12.1-amd64"},
		{"distribution", f.Distribution, "debian 13"},
		{"hypervisor", f.Hypervisor, KVM},
		{"offered", f.Offered, []string{"steal-time", "poll-control"}},
		{"unused", f.Unused, []string{"steal-time: argument no-steal-acc", "poll-control: no haltpoll driver is in use"}},
		{"dedicated", f.Dedicated, true},
		{"CPUs", f.CPUs, 2},
		{"steal", f.Steal, 20.0},
		{"clock", f.Clock, Clock{"acpi_pm", []string{"kvm-clock", "tsc", "acpi_pm"}, true}},
		{"ticks", f.Ticks, Ticks{HZ: 250, Stops: false, CanFull: true, PerSecond: 500, Idle: 80}},
		{"idle", f.Idle, Idle{"none", "menu", []string{"menu", "haltpoll"}, true}},
		{"console", f.Console, Console{[]string{"ttyS0", "tty0"}, 7, 400}},
		{"NMI watchdog", f.NMIWatchdog, true},
		{"disks", f.Disks, []Disk{{"sda", "ata_piix", "none", []string{"none", "mq-deadline"}, 0},
			{"vda", "virtio_blk", "mq-deadline", []string{"none", "mq-deadline", "kyber"}, 1}}},
		{"networks", f.Networks, []Network{{"eth0", "virtio_net", 1, 2, 0, 0, 65536, 65536, 300}}},
		{"mounts", f.Mounts, []Mount{{"/mnt/a b", "virtiofs", "0:50", 128}}},
		{"interrupts", f.Interrupts, []Interrupt{{4, "ttyS0", 0, "", ""}, {25, "virtio0-input.0", 300, "0-1", "1"}}},
		{"missing", f.Missing, []string{}},
	} {
		if !reflect.DeepEqual(one.got, one.want) {
			t.Errorf("%s is %+v, should be %+v", one.what, one.got, one.want)
		}
	}
}

// A kernel, or a container, may lack any of the files.
func TestEachFileMayBeAbsentOrRubbish(t *testing.T) {
	paths := slices.Sorted(maps.Keys(files))
	for _, path := range append(paths, slices.Sorted(maps.Keys(first))...) {
		collect(t, map[string]string{path: "absent"})
		if !strings.HasPrefix(files[path], "-> ") {
			collect(t, map[string]string{path: ""})
			collect(t, map[string]string{path: "\x00\xff[\n:::\n- - -\n=,{}[]\n99999999999999999999999\n"})
		}
	}
	f := Collect(system.System{Root: t.TempDir()}, func() float64 { return 0 })
	if len(f.Missing) < 4 || f.CPUs != 1 || f.Ticks.PerSecond != 0 {
		t.Errorf("without any file: %+v", f)
	}
	for _, line := range f.Missing {
		if strings.Contains(line, "\n") {
			t.Errorf("the text has more than one line: %q", line)
		}
	}
}

func TestOtherHypervisor(t *testing.T) {
	f := collect(t, map[string]string{"/cpuid": "VMwareVMware 0xffff 0x1"})
	if f.Hypervisor != "VMwareVMware" || len(f.Offered) != 0 || f.Dedicated || len(f.Missing) != 1 {
		t.Errorf("%+v", f)
	}
}

func TestCountList(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-3,8,10-11": 7, "": 0, "x": 0, "3-1": 0, "0-x": 0, "1-": 0} {
		if got := countList(list); got != want {
			t.Errorf("%q: %d, should be %d", list, got, want)
		}
	}
}

func TestArgument(t *testing.T) {
	f := &Facts{Arguments: []string{"quiet", "tsc=reliable", "tsc=nowatchdog", "nohz_full=1-3"}}
	if value, there := f.Argument("tsc"); value != "nowatchdog" || !there {
		t.Errorf("the last argument does not decide: %q", value)
	}
	if !f.Has("quiet") || f.Has("nohz") || f.Has("tsc=other") {
		t.Error("Has must compare complete names")
	}
}
