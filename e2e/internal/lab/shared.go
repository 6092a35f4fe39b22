// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"

	"stargate/e2e/internal/say"
)

// Several scripts use the same guests, one after the other. Verdict checks the state after a
// script, and Renew restores guests and volume to their first state.

// Verdict returns the errors since the start of the guests, or since the last verdict. It unmounts
// the volume and unloads the module in guests that still run.
func (l *Lab) Verdict(fsck string) []string {
	wrong := l.judge(fsck, l.settleAndUnguard)
	l.forget()
	return wrong
}

// settleAndUnguard unmounts the volume and unloads the module in a guest, and ends the guest's
// guard. The lab is about to change the volume's bytes.
func (l *Lab) settleAndUnguard(m *member) error {
	if err := l.settle(m); err != nil {
		return err
	}
	return m.guard.dismiss()
}

// forget removes the logs that have already been checked.
func (l *Lab) forget() {
	l.mu.Lock()
	l.damage = false
	l.mu.Unlock()
	for _, name := range l.names {
		m := l.members[name]
		m.mu.Lock()
		m.consoles, m.panics = nil, map[string]bool{}
		if m.guest != nil && m.guest.Alive() {
			m.consoles = []string{m.guest.Console}
			m.judged = fileSize(m.guest.Console)
		}
		m.mu.Unlock()
	}
}

// Renew makes a new volume, and restores the first state of each guest. It reboots a guest whose
// state it cannot restore. If anew is set, it reboots all guests.
func (l *Lab) Renew(anew bool) error {
	if anew {
		l.KillAll() // a request may wait for a guest, and hold its lock: the guest's end ends both
		l.forget()
	}
	if err := l.together(func(m *member) error { return l.tidyOrEnd(m, anew) }); err != nil {
		return err
	}
	if err := l.Range.Clear(); err != nil {
		return fmt.Errorf("clearing the range: %w", err)
	}
	if l.Mount {
		if err := l.Format(); err != nil {
			return err
		}
	}
	if err := l.together(l.refit); err != nil {
		return err
	}
	for _, name := range l.names {
		if err := l.mount(l.members[name]); err != nil {
			return err
		}
	}
	return nil
}

// tidyOrEnd restores the state of a guest after its boot, or ends the guest. It must come before
// the range is cleared: file systems of the last script may still be mounted there.
func (l *Lab) tidyOrEnd(m *member, anew bool) error {
	if m.guest == nil || anew {
		err := m.guard.gone() // until then, the guard may store to the volume
		m.guard = nil
		return err
	}
	if m.guest.Alive() && !m.spent && m.life.At == 0 {
		err := l.tidy(m)
		if err == nil {
			return nil
		}
		say.Line("%s reboots, because its state has changed: %v", m.name, err)
	}
	m.expected = true
	m.guest.Kill()
	return l.guardsDone(m)
}

// refit boots a guest that has ended. In a running guest, it loads the module, and starts new
// guards.
func (l *Lab) refit(m *member) error {
	m.life = Life{}
	if m.guest == nil || !m.guest.Alive() {
		return l.boot(m)
	}
	if l.Guard != "" {
		if err := l.startGuards(m, l.logName(m, "guard")); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return l.load(m)
}

// tidy undoes the changes that the last script has made in a guest.
func (l *Lab) tidy(m *member) error {
	now, err := l.state(m)
	if err != nil {
		return err
	}
	work := m.booted.undo(now)
	if err := l.inGuest(m, tidyScript, work...); err != nil {
		return err
	}
	if work != nil {
		if now, err = l.state(m); err != nil {
			return err
		}
	}
	if other := m.booted.differs(now); other != "" {
		return errors.New(other)
	}
	return nil
}

// state returns a guest's current state.
func (l *Lab) state(m *member) (guestState, error) {
	var out, errs bytes.Buffer
	status, err := m.guest.Link.Run([]string{"bash", "-c", stateScript}, nil, &out, &errs)
	if err == nil && status != 0 {
		err = fmt.Errorf("status %d: %s", status, strings.TrimSpace(errs.String()))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: its state: %w", m.name, err)
	}
	return parseState(out.String()), nil
}

// stateScript prints the state that scripts change in guests: files that do not belong to the
// system, mounts, block devices, interfaces, control groups and settings. A line has a kind, a name
// and a value. stateScript does not print min_free_kbytes, because the kernel itself changes it
// when programs begin to use large pages.
const stateScript = `set -e
find /etc /home /mnt /opt /root /run /srv /tmp /usr/local /var /dev/shm -xdev \
	\( -type d -printf 'file\t%p\t%y %m %U:%G\n' -o -printf 'file\t%p\t%y %m %U:%G %s %T@\n' \)
while read -r source target kind _; do printf 'mount\t%s\t%s %s\n' "$target" "$source" "$kind"; done </proc/self/mounts
for block in /sys/block/*; do
	read -r size <"$block/size"
	[ "$size" = 0 ] || printf 'block\t%s\t%s\n' "${block##*/}" "$size"
done
for link in /sys/class/net/*; do printf 'link\t%s\t\n' "${link##*/}"; done
[ ! -d /sys/fs/cgroup ] || find /sys/fs/cgroup -mindepth 1 -type d -printf 'cgroup\t%p\t\n'
printf 'setting\t/proc/sys/kernel/hostname\t%s\n' "$(</proc/sys/kernel/hostname)"
huge=/sys/kernel/mm/transparent_hugepage/enabled
[ ! -e $huge ] || sed -n "s|.*\[\(.*\)\].*|setting\t$huge\t\1|p" $huge
{ grep -sH . /proc/sys/vm/* /proc/sys/fs/{aio-max-nr,file-max,leases-enable,nr_open,protected_*} \
	/proc/sys/kernel/{core_pattern,modules_disabled,panic*,printk,randomize_va_space,sysrq,threads-max,yama/*} \
	/sys/kernel/tracing/{tracing_on,current_tracer} || true; } |
	sed -n 's|^/proc/sys/vm/\(drop_caches\|min_free_kbytes\):.*||; s|^\([^:]*\):|setting\t\1\t|p'`

// tidyScript undoes changes of scripts. Its arguments are pairs of a verb and an object. It also
// writes dirty pages to the range.
const tidyScript = `while [ $# -gt 0 ]; do
	case $1 in
	umount) umount "$2" || umount -l "$2" ;;
	devices)
		! command -v dmsetup >/dev/null || dmsetup remove_all --force
		losetup -D ;;
	remove) rm -rf --one-file-system "$2" ;;
	rmdir) rmdir "$2" ;;
	set) echo "${2#*=}" >"${2%%=*}" ;;
	esac
	shift 2
done
sync
echo 3 >/proc/sys/vm/drop_caches
dmesg -C
if [ -d /sys/kernel/tracing ]; then : >/sys/kernel/tracing/set_event; : >/sys/kernel/tracing/trace; fi
exit 0`

// guestState is the output of stateScript: values by kind and name. A name may have several values,
// for example a mount point with several mounts.
type guestState map[stateKey][]string

type stateKey struct{ kind, name string }

func parseState(text string) guestState {
	state := guestState{}
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		kind, rest, _ := strings.Cut(line, "\t")
		name, value, _ := strings.Cut(rest, "\t")
		key := stateKey{kind, name}
		state[key] = append(state[key], value)
	}
	return state
}

// differs names one difference between two states.
func (s guestState) differs(now guestState) string {
	for _, key := range s.keys(now) {
		if was, is := s[key], now[key]; len(was) != len(is) || strings.Join(was, "\n") != strings.Join(is, "\n") {
			return fmt.Sprintf("%s %s: %q was %q", key.kind, key.name, is, was)
		}
	}
	return ""
}

// keys returns the sorted keys of two states.
func (s guestState) keys(now guestState) []stateKey {
	var keys []stateKey
	for key := range s {
		keys = append(keys, key)
	}
	for key := range now {
		if _, both := s[key]; !both {
			keys = append(keys, key)
		}
	}
	sort.Slice(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		return a.kind < b.kind || a.kind == b.kind && a.name < b.name
	})
	return keys
}

// undo returns the work for tidyScript that restores the state s.
func (s guestState) undo(now guestState) []string {
	var umount, devices, remove, set []string
	for _, key := range s.keys(now) {
		was, is := s[key], now[key]
		added := len(was) == 0
		switch {
		case key.kind == "mount" && len(is) > len(was):
			for range is[len(was):] {
				umount = append([]string{"umount", key.name}, umount...) // the mounts inside it come first
			}
		case key.kind == "block" && added:
			devices = []string{"devices", ""}
		case key.kind == "file" && added:
			remove = append(remove, "remove", key.name)
		case key.kind == "cgroup" && added:
			remove = append([]string{"rmdir", key.name}, remove...)
		case key.kind == "setting" && !added && len(is) == 1 && is[0] != was[0]:
			set = append(set, "set", key.name+"="+was[0])
		}
	}
	return append(append(append(umount, devices...), remove...), set...)
}

// load loads the module in a guest.
func (l *Lab) load(m *member) error {
	if !l.Module {
		return nil
	}
	if err := l.inGuest(m, loadScript, ModulePath, ModuleFor(m.system.Release)); err != nil {
		return fmt.Errorf("%s: loading the module: %w", m.name, err)
	}
	return nil
}

// unjudged returns the part of a log that no verdict has judged yet.
func (m *member) unjudged(console string, log []byte) []byte {
	if m.guest != nil && console == m.guest.Console && m.judged <= int64(len(log)) {
		return log[m.judged:]
	}
	return log
}

// fileSize returns a file's size, or 0 on an error.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
