// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stargate/tune/internal/system"
)

// sample holds the counters that are read twice to compute rates.
type sample struct {
	interrupts map[string]counter
	times      times
	serial     uint64
}

func take(sys system.System) sample {
	interrupts, _ := sys.Read("/proc/interrupts")
	stat, _ := sys.Read("/proc/stat")
	serial, _ := sys.Read("/proc/tty/driver/serial")
	return sample{parseInterrupts(interrupts), parseTimes(stat), parseSerial(serial)}
}

// Collect measures between two moments. pause waits until the second one, and returns the seconds
// in between.
func Collect(sys system.System, pause func() float64) *Facts {
	// Lists are never nil: JSON has [] and not null.
	f := &Facts{Kind: "guest", Kernel: sys.Release(), Offered: []string{}, Unused: []string{},
		Console: Console{Names: []string{}}, Disks: []Disk{}, Networks: []Network{}, Mounts: []Mount{},
		Interrupts: []Interrupt{}, Missing: []string{}}
	id, version := sys.Distribution()
	f.Distribution = strings.TrimSpace(id + " " + version)
	before := take(sys)
	f.Seconds = pause()
	after := take(sys)

	f.Arguments = strings.Fields(sys.Text("/proc/cmdline"))
	f.CPUs = max(1, countList(sys.Text("/sys/devices/system/cpu/online")))
	f.clock(sys)
	f.ticks(sys, before, after)
	f.idle(sys)
	f.console(sys, before, after)
	value, there := sys.Number("/proc/sys/kernel/nmi_watchdog")
	f.NMIWatchdog = there && value != 0
	f.interrupts(sys, before, after)
	f.disks(sys)
	f.networks(sys)
	f.mounts(sys)
	f.hypervisor(sys)
	return f
}

func (f *Facts) missing(line string) { f.Missing = append(f.Missing, line) }

func (f *Facts) clock(sys system.System) {
	const at = "/sys/devices/system/clocksource/clocksource0/"
	f.Clock.Current = sys.Text(at + "current_clocksource")
	f.Clock.Available = strings.Fields(sys.Text(at + "available_clocksource"))
	if f.Clock.Current == "" {
		f.missing("the clock source is unknown: the kernel has no " + at + "current_clocksource")
	}
	cpuinfo, _ := sys.Read("/proc/cpuinfo")
	for line := range strings.SplitSeq(cpuinfo, "\n") {
		if strings.HasPrefix(line, "flags") {
			flags := strings.Fields(line)
			f.Clock.InvariantTSC = slices.Contains(flags, "constant_tsc") && slices.Contains(flags, "nonstop_tsc")
			break
		}
	}
}

// configuration returns the kernel's configuration from a usual place of a distribution.
func configuration(sys system.System, release string) string {
	for _, path := range []string{"/boot/config-" + release, "/usr/lib/modules/" + release + "/config",
		"/lib/modules/" + release + "/config"} {
		if text, err := sys.Read(path); err == nil {
			return text
		}
	}
	file, err := os.Open(sys.Path("/proc/config.gz"))
	if err != nil {
		return ""
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return ""
	}
	text, _ := io.ReadAll(io.LimitReader(unpacked, 4<<20))
	return string(text)
}

func (f *Facts) ticks(sys system.System, before, after sample) {
	config := "\n" + configuration(sys, f.Kernel) + "\n"
	if _, rest, ok := strings.Cut(config, "\nCONFIG_HZ="); ok {
		number, _, _ := strings.Cut(rest, "\n")
		f.Ticks.HZ, _ = strconv.Atoi(number)
	} else {
		f.missing("HZ is unknown: there is no /boot/config-" + f.Kernel)
	}
	nohz, _ := f.Argument("nohz")
	highres, _ := f.Argument("highres")
	f.Ticks.Stops = nohz != "off" && highres != "off"
	f.Ticks.CanFull = strings.Contains(config, "\nCONFIG_NO_HZ_FULL=y\n") || sys.Exists("/sys/devices/system/cpu/nohz_full")
	f.Ticks.Full = strings.Trim(sys.Text("/sys/devices/system/cpu/nohz_full"), "()")
	if f.Ticks.Full == "null" {
		f.Ticks.Full = ""
	}
	f.Ticks.PerSecond = f.rate(before.interrupts["LOC"].total, after.interrupts["LOC"].total)
	if all := after.times.all - before.times.all; after.times.all > before.times.all {
		f.Steal = 100 * float64(less(after.times.steal, before.times.steal)) / float64(all)
		f.Ticks.Idle = 100 * float64(less(after.times.idle, before.times.idle)) / float64(all)
	}
}

func (f *Facts) idle(sys system.System) {
	const at = "/sys/devices/system/cpu/cpuidle/"
	f.Idle.Driver = sys.Text(at + "current_driver")
	f.Idle.Governor = sys.Text(at + "current_governor")
	if f.Idle.Governor == "" {
		f.Idle.Governor = sys.Text(at + "current_governor_ro")
	}
	f.Idle.Governors = strings.Fields(sys.Text(at + "available_governors"))
	f.Idle.CanHaltpoll = sys.Exists("/sys/module/cpuidle_haltpoll") ||
		strings.Contains(configuration(sys, f.Kernel), "\nCONFIG_HALTPOLL_CPUIDLE=y\n")
	if f.Idle.Driver == "" {
		f.missing("the idle driver is unknown: the kernel has no " + at)
	}
}

func (f *Facts) console(sys system.System, before, after sample) {
	for line := range strings.SplitSeq(sys.Text("/proc/consoles"), "\n") {
		if fields := strings.Fields(line); len(fields) > 0 {
			f.Console.Names = append(f.Console.Names, fields[0])
		}
	}
	level, _, _ := strings.Cut(strings.Join(strings.Fields(sys.Text("/proc/sys/kernel/printk")), " "), " ")
	f.Console.Level, _ = strconv.ParseInt(level, 10, 64)
	f.Console.SerialBytes = f.rate(before.serial, after.serial)
}

func (f *Facts) interrupts(sys system.System, before, after sample) {
	for label, one := range after.interrupts {
		if one.number < 0 {
			continue
		}
		at := "/proc/irq/" + label
		f.Interrupts = append(f.Interrupts, Interrupt{
			Number: one.number, Name: one.name,
			PerSecond: f.rate(before.interrupts[label].total, one.total),
			Allowed:   sys.Text(at + "/smp_affinity_list"),
			Effective: sys.Text(at + "/effective_affinity_list"),
		})
	}
	slices.SortFunc(f.Interrupts, func(a, b Interrupt) int { return a.Number - b.Number })
	if len(after.interrupts) == 0 {
		f.missing("interrupts are unknown: /proc/interrupts cannot be read")
	}
}

// driverOf returns the driver of the nearest device above a path of sysfs that has one. It skips
// drivers of SCSI's upper layer, which are the same for all controllers.
func driverOf(sys system.System, path string) string {
	top := sys.Path("/sys/devices")
	for at := sys.Real(path); strings.HasPrefix(at, top+"/"); at = filepath.Dir(at) {
		target, err := os.Readlink(filepath.Join(at, "driver"))
		if name := filepath.Base(target); err == nil && name != "sd" && name != "sr" {
			return name
		}
	}
	return ""
}

func (f *Facts) disks(sys system.System) {
	for _, name := range sys.List("/sys/block") {
		at := "/sys/block/" + name
		driver := driverOf(sys, at)
		if driver == "" || strings.HasPrefix(name, "sr") || strings.HasPrefix(name, "fd") {
			continue
		}
		disk := Disk{Name: name, Driver: driver, Queues: len(sys.List(at + "/mq"))}
		disk.Scheduler, disk.Schedulers = sys.Chosen(at + "/queue/scheduler")
		f.Disks = append(f.Disks, disk)
	}
}

func (f *Facts) networks(sys system.System) {
	sizes, err := sys.Links()
	if err != nil {
		f.missing(err.Error())
	}
	for _, name := range sys.List("/sys/class/net") {
		at := "/sys/class/net/" + name
		driver := sys.Link(at + "/device/driver")
		if driver == "" {
			continue
		}
		one := Network{Name: name, Driver: driver, DeferIRQs: -1,
			TSOMax: int64(sizes[name].TSOMax), GSOMax: int64(sizes[name].GSOMax)}
		for _, queue := range sys.List(at + "/queues") {
			if strings.HasPrefix(queue, "rx-") {
				one.RxQueues++
			} else if strings.HasPrefix(queue, "tx-") {
				one.TxQueues++
			}
		}
		if value, there := sys.Number(at + "/napi_defer_hard_irqs"); there {
			one.DeferIRQs = value
		}
		one.FlushTimeout, _ = sys.Number(at + "/gro_flush_timeout")
		device := sys.Link(at+"/device") + "-"
		for _, irq := range f.Interrupts {
			if irq.Name == name || strings.HasPrefix(irq.Name, name+"-") ||
				strings.HasPrefix(irq.Name, device+"input.") || strings.HasPrefix(irq.Name, device+"output.") {
				one.Interrupts += irq.PerSecond
			}
		}
		f.Networks = append(f.Networks, one)
	}
}

func (f *Facts) mounts(sys system.System) {
	text, _ := sys.Read("/proc/self/mountinfo")
	seen := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		before, after, ok := strings.Cut(line, " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 1 || !remote(right[0]) || seen[left[2]] {
			continue
		}
		readahead, there := sys.Number("/sys/class/bdi/" + left[2] + "/read_ahead_kb")
		if !there {
			continue
		}
		seen[left[2]] = true
		f.Mounts = append(f.Mounts, Mount{Path: unescape(left[4]), Type: right[0], Device: left[2], Readahead: readahead})
	}
}

// less returns the difference of two counters, or 0 after a reset.
func less(after, before uint64) uint64 {
	if after < before {
		return 0
	}
	return after - before
}

func (f *Facts) rate(before, after uint64) float64 {
	if f.Seconds <= 0 {
		return 0
	}
	return float64(less(after, before)) / f.Seconds
}
