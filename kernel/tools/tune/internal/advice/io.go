// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stargate/tune/internal/change"
	"stargate/tune/internal/guest"
)

func scheduler(_ Input, f *guest.Facts) *Advice {
	var settings []change.Setting
	var seen []string
	for _, disk := range f.Disks {
		virtual := disk.Driver == "virtio_blk" || disk.Driver == "virtio_scsi"
		if !virtual || disk.Scheduler == "" || disk.Scheduler == "none" || !slices.Contains(disk.Schedulers, "none") {
			continue
		}
		match := `ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="vd*"`
		if disk.Driver == "virtio_scsi" {
			match = `ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", KERNEL=="sd*", DRIVERS=="virtio_scsi"`
		}
		settings = append(settings, change.Setting{Kind: change.Attribute, Value: "none", Match: match,
			Name: "/sys/block/" + disk.Name + "/queue/scheduler"})
		seen = append(seen, disk.Name+" ("+disk.Driver+"): "+disk.Scheduler)
	}
	if settings == nil {
		return nil
	}
	return &Advice{
		Title:    "no second I/O scheduler",
		Reason:   "the host schedules the same requests again, and has the data of the real disk",
		Evidence: strings.Join(seen, "; "),
		Saving:   "P2: writes +6.0 %, reads +5.6 % (2010, one queue); " + notMeasured + " here",
		Risk:     "bfq's shares between the guest's processes, and priorities by ionice, have no effect then",
		Settings: settings,
	}
}

func irqAffinity(_ Input, f *guest.Facts) *Advice {
	if f.CPUs < 2 {
		return nil
	}
	loads := map[string]float64{} // by processor
	numbers := map[string][]string{}
	var sum float64
	for _, irq := range f.Interrupts {
		if irq.PerSecond < irqSome || !strings.HasPrefix(irq.Name, "virtio") {
			continue
		}
		loads[irq.Effective] += irq.PerSecond
		numbers[irq.Effective] = append(numbers[irq.Effective], strconv.Itoa(irq.Number))
		sum += irq.PerSecond
	}
	for cpu, load := range loads {
		if _, err := strconv.Atoi(cpu); err != nil || len(numbers[cpu]) < 2 || load < 0.8*sum {
			continue
		}
		var commands []string
		for i, number := range numbers[cpu] {
			commands = append(commands, fmt.Sprintf("echo %d >/proc/irq/%s/smp_affinity_list", i%f.CPUs, number))
		}
		return &Advice{
			Title:    "spread the interrupts of virtual devices",
			Reason:   "one vCPU handles the interrupts of several queues, and each of them wakes it",
			Evidence: fmt.Sprintf("vCPU %s takes %.0f of %.0f interrupts a second (%s)", cpu, load, sum, strings.Join(numbers[cpu], ", ")),
			Saving:   notMeasured,
			Risk:     "the kernel refuses to move interrupts that it manages itself (virtio-blk); irqbalance, if it runs, may move them again",
			Undo:     "write the former list, or reboot",
			Commands: commands,
		}
	}
	return nil
}

func napiDefer(_ Input, f *guest.Facts) *Advice {
	var settings []change.Setting
	var seen []string
	for _, one := range f.Networks {
		if one.Driver != "virtio_net" || one.DeferIRQs != 0 || one.Interrupts < irqBusy {
			continue
		}
		match := `ACTION=="add", SUBSYSTEM=="net", DRIVERS=="virtio_net", KERNEL=="` + one.Name + `"`
		at := "/sys/class/net/" + one.Name + "/"
		settings = append(settings,
			change.Setting{Kind: change.Attribute, Name: at + "gro_flush_timeout", Value: "200000", Match: match},
			change.Setting{Kind: change.Attribute, Name: at + "napi_defer_hard_irqs", Value: "2", Match: match})
		seen = append(seen, fmt.Sprintf("%s: %.0f interrupts a second", one.Name, one.Interrupts))
	}
	if settings == nil {
		return nil
	}
	a := &Advice{
		Title:    "let the kernel poll a busy network device a little longer",
		Reason:   "each interrupt costs an exit or an injection; the kernel can poll two more times, after 200 us each, before it enables interrupts (P2 removed NAPI from drivers of emulated cards instead)",
		Evidence: strings.Join(seen, "; "),
		Saving:   notMeasured + " here; the values are the example of the kernel's documentation (networking/napi)",
		Risk:     "a single packet after a pause may wait up to 200 us",
		Settings: settings,
	}
	if atLeast(f.Kernel, 6, 13) {
		a.Commands = []string{"this kernel can suspend interrupts while a program polls (irq-suspend-timeout of networking/napi); this helps programs that use epoll's busy polling"}
	}
	return a
}

// atLeast reports whether a kernel's release is at least a given version.
func atLeast(release string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(release, "%d.%d", &a, &b); n != 2 {
		return false
	}
	return a > major || a == major && b >= minor
}

func bigTCP(_ Input, f *guest.Facts) *Advice {
	var commands, seen []string
	for _, one := range f.Networks {
		if one.TSOMax <= 65536 || one.GSOMax > 65536 || one.GSOMax == 0 {
			continue
		}
		size := min(one.TSOMax, 185000)
		commands = append(commands, fmt.Sprintf("ip link set dev %s gso_max_size %d gro_max_size %d", one.Name, size, size))
		seen = append(seen, fmt.Sprintf("%s: tso_max_size %d, gso_max_size %d", one.Name, one.TSOMax, one.GSOMax))
	}
	if commands == nil {
		return nil
	}
	return &Advice{
		Title:    "packets of more than 64 KiB inside this machine (BIG TCP)",
		Reason:   "the stack processes fewer and larger packets, and notifies the host less often",
		Evidence: strings.Join(seen, "; "),
		Saving:   notMeasured,
		Risk:     "kernels before 6.3 support this for IPv6 only; programs that capture packets may not support such sizes",
		Undo:     "set gso_max_size and gro_max_size to 65536, or reboot",
		Commands: commands,
	}
}

func readahead(_ Input, f *guest.Facts) *Advice {
	var settings []change.Setting
	var seen []string
	for _, one := range f.Mounts {
		if one.Readahead >= readaheadK {
			continue
		}
		settings = append(settings, change.Setting{Kind: change.Attribute, Value: strconv.Itoa(readaheadK),
			Name: "/sys/class/bdi/" + one.Device + "/read_ahead_kb", Match: `ACTION=="add", SUBSYSTEM=="bdi", KERNEL=="0:*"`})
		seen = append(seen, fmt.Sprintf("%s (%s): %d KiB", one.Path, one.Type, one.Readahead))
	}
	if settings == nil {
		return nil
	}
	return &Advice{
		Title:    "read further ahead on network and FUSE mounts",
		Reason:   "a sequential read waits for each request that was not sent early enough; readahead decides how much the kernel requests at a time",
		Evidence: strings.Join(seen, "; "),
		Saving:   notMeasured,
		Risk:     "random reads may fetch bytes that no program needs; the udev rule applies to all mounts without a disk of their own, and FUSE may lower the value again when it mounts",
		Settings: settings,
	}
}

func serialConsole(_ Input, f *guest.Facts) *Advice {
	serial := ""
	for _, name := range f.Console.Names {
		if strings.HasPrefix(name, "ttyS") {
			serial = name
		}
	}
	if serial == "" || f.Console.Level <= 4 || f.Console.SerialBytes < serialBusy {
		return nil
	}
	return &Advice{
		Title:    "fewer kernel messages on the serial port",
		Reason:   "an emulated serial port takes an exit for each byte, and the kernel waits for it",
		Evidence: fmt.Sprintf("console %s, level %d, %.0f bytes a second", serial, f.Console.Level, f.Console.SerialBytes),
		Saving:   fmt.Sprintf("up to %.0f exits a second", f.Console.SerialBytes),
		Risk:     "messages of level 4 and above (warnings are 4) then appear only in the kernel's log",
		Settings: []change.Setting{{Kind: change.Sysctl, Name: "kernel.printk", Value: "4 4 1 7"}},
	}
}

// emulatedDisks lists drivers of disk controllers that QEMU emulates register by register.
func emulatedController(driver string) bool {
	return driver == "ata_piix" || driver == "ahci" || driver == "sym53c8xx" || strings.HasPrefix(driver, "pata_") ||
		driver == "mptspi" || driver == "mptsas"
}

var emulatedCards = []string{"e1000", "e1000e", "8139cp", "8139too", "ne2k-pci", "pcnet32", "tulip", "vmxnet3"}

func emulatedDisk(_ Input, f *guest.Facts) *Advice {
	var seen []string
	for _, disk := range f.Disks {
		if emulatedController(disk.Driver) {
			seen = append(seen, disk.Name+": "+disk.Driver)
		}
	}
	if seen == nil {
		return nil
	}
	return &Advice{
		Title:    "virtio instead of an emulated disk controller",
		Reason:   "the driver writes several registers for each request, and each one is an exit (P2 3.1.1: 11 ports in a row); virtio-blk notifies the host once for many requests",
		Evidence: strings.Join(seen, "; "),
		Saving:   "P2 counted 111,050 exits at one such site under bonnie++ (2010); " + notMeasured + " here",
		Risk:     "names of disks change (sda to vda): /etc/fstab must use UUIDs; the initramfs needs virtio_blk",
		Undo:     "restore the definition of the virtual machine",
		Commands: []string{"in QEMU: if=virtio; in libvirt: <target bus='virtio'/>; in KubeVirt: disk.bus: virtio"},
	}
}

func emulatedNetwork(_ Input, f *guest.Facts) *Advice {
	var seen []string
	for _, one := range f.Networks {
		if slices.Contains(emulatedCards, one.Driver) {
			seen = append(seen, one.Name+": "+one.Driver)
		}
	}
	if seen == nil {
		return nil
	}
	return &Advice{
		Title:    "virtio instead of an emulated network card",
		Reason:   "the driver reads and writes registers for each packet or interrupt, and each access is an exit",
		Evidence: strings.Join(seen, "; "),
		Saving:   "P2: throughput +60 % by fewer accesses to an emulated card (2010); " + notMeasured + " here",
		Risk:     "the name of the device may change, and with it the network's configuration",
		Undo:     "restore the definition of the virtual machine",
		Commands: []string{"in QEMU: model=virtio-net-pci; in libvirt: <model type='virtio'/>; in KubeVirt: interfaces[].model: virtio"},
	}
}

func queues(_ Input, f *guest.Facts) *Advice {
	var seen []string
	for _, one := range f.Networks {
		if one.Driver == "virtio_net" && one.RxQueues < f.CPUs && one.RxQueues < 8 {
			seen = append(seen, fmt.Sprintf("%s has %d queue(s)", one.Name, one.RxQueues))
		}
	}
	for _, one := range f.Disks {
		if one.Driver == "virtio_blk" && one.Queues > 0 && one.Queues < f.CPUs && one.Queues < 8 {
			seen = append(seen, fmt.Sprintf("%s has %d queue(s)", one.Name, one.Queues))
		}
	}
	if seen == nil {
		return nil
	}
	return &Advice{
		Title:    "a queue for each vCPU",
		Reason:   "vCPUs that share a queue wait for its lock, and one of them handles its interrupts",
		Evidence: strings.Join(seen, "; ") + fmt.Sprintf("; %d vCPUs", f.CPUs),
		Saving:   notMeasured,
		Risk:     "more memory and interrupts; more threads of vhost on the host",
		Undo:     "restore the definition of the virtual machine",
		Commands: []string{fmt.Sprintf("in QEMU: queues=%d,mq=on for virtio-net, num-queues=%d for virtio-blk; in KubeVirt: networkInterfaceMultiqueue: true, blockMultiQueue: true", f.CPUs, f.CPUs)},
	}
}
