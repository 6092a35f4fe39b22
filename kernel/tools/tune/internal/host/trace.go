// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"stargate/tune/internal/system"
)

// The kernel itself counts events by their fields (histogram triggers), in a separate instance of
// tracefs. So the kernel copies no event to user space, and other users of tracing are not
// affected.
const prefix = "stargate-tune-"

// trigger is a histogram of one of KVM's events. The kernel allows three keys.
type trigger struct{ name, event, keys string }

var triggers = []trigger{
	{"reasons", "kvm_exit", "common_pid,exit_reason"},
	{"addresses", "kvm_exit", "common_pid,exit_reason,guest_rip"},
	{"ports", "kvm_pio", "common_pid,port,rw"},
	{"mmio", "kvm_mmio", "common_pid,gpa,type"},
	{"msrs", "kvm_msr", "common_pid,ecx,write"},
	{"vectors", "kvm_inj_virq", "common_pid,vec"},
}

// Tables of addresses are the longest, because user space of a guest may exit at any address.
func (t trigger) line() string {
	size := 2048
	if t.name == "addresses" {
		size = 16384
	}
	return fmt.Sprintf("hist:keys=%s:size=%d", t.keys, size)
}

// trace is a running measurement by tracefs.
type trace struct {
	sys     system.System
	at      string // the instance
	started []trigger
}

// start sets the triggers. The returned lines name the events that this kernel lacks. Without
// tracefs the returned trace is nil.
func start(sys system.System) (*trace, []string) {
	root := ""
	for _, path := range []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"} {
		if sys.Exists(path + "/instances") {
			root = path
			break
		}
	}
	if root == "" {
		return nil, []string{"reasons and addresses of exits are unknown: tracefs is not mounted: mount -t tracefs tracefs /sys/kernel/tracing"}
	}
	if !sys.Exists(root + "/events/kvm/kvm_exit") {
		return nil, []string{"reasons and addresses of exits are unknown: KVM is not loaded, or has no tracepoints"}
	}
	sweep(sys, root)
	t := &trace{sys: sys, at: root + "/instances/" + prefix + strconv.Itoa(os.Getpid())}
	if err := os.Mkdir(sys.Path(t.at), 0o700); err != nil && !os.IsExist(err) {
		return nil, []string{"reasons and addresses of exits are unknown: " + err.Error() + " (are you root?)"}
	}
	var missing []string
	for _, one := range triggers {
		if one.name == "vectors" {
			one.keys = "common_pid," + t.vectorField(one)
		}
		if err := sys.Set(t.file(one, "trigger"), one.line()); err != nil {
			missing = append(missing, one.name+" are unknown: event "+one.event+" of this kernel counts none: "+err.Error())
			continue
		}
		t.started = append(t.started, one)
	}
	return t, missing
}

// vectorField returns the name of the event's field for a vector, which differs between kernels.
func (t *trace) vectorField(one trigger) string {
	format := t.sys.Text(t.file(one, "format"))
	for _, name := range []string{"vector", "irq"} {
		if strings.Contains(format, " "+name+";") {
			return name
		}
	}
	return "vec"
}

func (t *trace) file(one trigger, name string) string {
	return t.at + "/events/kvm/" + one.event + "/" + name
}

// stop removes the triggers and the instance.
func (t *trace) stop() {
	for _, one := range t.started {
		_ = t.sys.Set(t.file(one, "trigger"), "!"+one.line())
	}
	t.started = nil
	_ = os.Remove(t.sys.Path(t.at))
}

// sweep removes the instances of killed measurements.
func sweep(sys system.System, root string) {
	for _, name := range sys.List(root + "/instances") {
		number, ours := strings.CutPrefix(name, prefix)
		pid, err := strconv.Atoi(number)
		if !ours || err != nil || pid <= 0 || pid == os.Getpid() || syscall.Kill(pid, 0) != syscall.ESRCH {
			continue
		}
		_ = os.Remove(sys.Path(root + "/instances/" + name))
	}
}

// entry is a line of a histogram.
type entry struct {
	keys map[string]uint64
	hits uint64
}

// read returns the histograms by the names of their triggers, and the number of events that a full
// histogram has missed.
func (t *trace) read() (map[string][]entry, map[string]uint64) {
	found, dropped := map[string][]entry{}, map[string]uint64{}
	read := map[string]bool{}
	for _, one := range t.started {
		if read[one.event] {
			continue
		}
		read[one.event] = true
		text, err := t.sys.Read(t.file(one, "hist"))
		if err != nil {
			continue
		}
		for keys, block := range blocks(text) {
			i := slices.IndexFunc(t.started, func(it trigger) bool {
				return it.event == one.event && it.keys == keys
			})
			if i >= 0 {
				name := t.started[i].name
				found[name], dropped[name] = parse(block)
			}
		}
	}
	return found, dropped
}

// blocks splits a file hist, which has all histograms of an event, by the keys of each.
func blocks(text string) map[string]string {
	found := map[string]string{}
	for part := range strings.SplitSeq(text, "# event histogram") {
		_, rest, ok := strings.Cut(part, "hist:keys=")
		if keys, _, ends := strings.Cut(rest, ":"); ok && ends {
			found[keys] = part
		}
	}
	return found
}

// parse reads a histogram: lines "{ key: value, key: value } hitcount: N", and totals.
func parse(block string) (entries []entry, dropped uint64) {
	for line := range strings.SplitSeq(block, "\n") {
		line = strings.TrimSpace(line)
		if value, ok := strings.CutPrefix(line, "Dropped:"); ok {
			dropped, _ = strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			continue
		}
		inner, rest, ok := strings.Cut(strings.TrimPrefix(line, "{"), "}")
		_, count, counted := strings.Cut(rest, "hitcount:")
		if !ok || !counted || !strings.HasPrefix(line, "{") {
			continue
		}
		one := entry{keys: map[string]uint64{}}
		for pair := range strings.SplitSeq(inner, ",") {
			key, value, _ := strings.Cut(pair, ":")
			number, err := strconv.ParseUint(strings.TrimSpace(value), 0, 64)
			if err != nil {
				continue
			}
			one.keys[strings.TrimSpace(key)] = number
		}
		one.hits, _ = strconv.ParseUint(strings.TrimSpace(count), 10, 64)
		entries = append(entries, one)
	}
	return entries, dropped
}
