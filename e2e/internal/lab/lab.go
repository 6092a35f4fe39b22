// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"stargate/e2e/internal/klog"
	"stargate/e2e/internal/say"
	"stargate/e2e/internal/vm"
)

// MountPoint is where guests have the volume.
const MountPoint = "/mnt/sg"

// Options are what the user may choose for a run.
type Options struct {
	Guests       int
	CPUs         int
	MemoryMiB    int
	Append       string // more words for the guests' kernel command line
	Payload      string // tar archive for the guests
	Module       bool   // load the module that is in the payload
	Mount        bool   // mount the volume
	MountOptions string
}

// ModulePath is where the payload has the module.
const ModulePath = "/root/stargatefs.ko"

// Lab is a run's guests and their shared range.
type Lab struct {
	*Assets
	Options
	Dir   string // logs
	Range *vm.Range

	names  []string
	guests map[string]*member

	mu       sync.Mutex
	unclean  bool // a system with the volume mounted was cut off, and none has mounted it since
	doing    map[int]activity
	activity int
}

// member is a guest through all its lives.
type member struct {
	name string

	mu       sync.Mutex // one change of its state at a time
	guest    *vm.Guest  // the last life, or nil; changed under the lab's lock as well
	expected bool       // its end, if it has ended, was asked for
	paused   bool
	consoles []string        // one file for each life
	panics   map[string]bool // of these, those that end in a panic which the script wanted
}

// activity is something that a script waits for.
type activity struct {
	what  string
	since time.Time
}

// New makes a lab; its guests are started by Start.
func New(a *Assets, o Options, r *vm.Range, dir string) *Lab {
	l := &Lab{Assets: a, Options: o, Dir: dir, Range: r, guests: map[string]*member{}, doing: map[int]activity{}}
	for i := 1; i <= o.Guests; i++ {
		name := fmt.Sprintf("g%d", i)
		l.names = append(l.names, name)
		l.guests[name] = &member{name: name, panics: map[string]bool{}}
	}
	return l
}

// Names are the guests' names.
func (l *Lab) Names() []string { return l.names }

func (l *Lab) member(name string) (*member, error) {
	m := l.guests[name]
	if m == nil {
		return nil, fmt.Errorf("there is no guest %q: there are %s", name, strings.Join(l.names, ", "))
	}
	return m, nil
}

// StartAll boots all guests at once, and then mounts in one after the other.
func (l *Lab) StartAll() error {
	results := make(chan error)
	for _, name := range l.names {
		go func(m *member) {
			m.mu.Lock()
			defer m.mu.Unlock()
			results <- l.boot(m)
		}(l.guests[name])
	}
	var failures []string
	for range l.names {
		if err := <-results; err != nil {
			failures = append(failures, err.Error())
		}
	}
	if failures != nil {
		return errors.New(strings.Join(failures, "; "))
	}
	for _, name := range l.names {
		if err := l.mount(l.guests[name]); err != nil {
			return err
		}
	}
	return nil
}

// Start boots a guest that is not running, and mounts there, which recovers
// the volume if need be.
func (l *Lab) Start(name string, mount bool) error {
	m, err := l.member(name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.guest != nil && m.guest.Alive() {
		return fmt.Errorf("%s is running already", name)
	}
	if err := l.boot(m); err != nil {
		return err
	}
	if !mount {
		return nil
	}
	return l.mount(m)
}

// bootLimit is for a debug kernel on a busy machine; a stock one takes seconds.
const bootLimit = 5 * time.Minute

// boot starts a guest and has the module loaded.
func (l *Lab) boot(m *member) error {
	start := time.Now()
	console := filepath.Join(l.Dir, fmt.Sprintf("%s.%d.console", m.name, len(m.consoles)+1))
	m.consoles = append(m.consoles, console)
	m.expected, m.paused = false, false
	guest, err := l.QEMU.Start(vm.Spec{
		Name:      m.name,
		Accel:     l.Accel,
		Kernel:    l.Kernel.Image,
		Initramfs: l.initramfs,
		Append:    l.Append,
		Disks:     vm.Disks{Root: l.root, Payload: l.Payload, Modules: l.modules},
		CPUs:      l.CPUs,
		MemoryMiB: l.MemoryMiB,
		Range:     l.Range,
	}, console)
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	l.mu.Lock()
	m.guest = guest
	l.mu.Unlock()
	if err := guest.WaitReady(bootLimit); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(console, 30))
	}
	if l.Module {
		if err := l.inGuest(m, loadScript, ModulePath); err != nil {
			return fmt.Errorf("%s: loading the module: %w", m.name, err)
		}
	}
	say.Line("%s is up after %.1f s", m.name, time.Since(start).Seconds())
	return nil
}

// loadScript loads a module that modprobe does not know, and what it needs.
const loadScript = `set -e
for needed in $(modinfo -F depends "$1" | tr , ' '); do modprobe "$needed"; done
insmod "$1"`

// mounts tells whether a guest mounts the volume by itself: the first only,
// as a volume takes one system at a time.
func (l *Lab) mounts(m *member) bool { return l.Mount && m.name == l.names[0] }

func (l *Lab) mount(m *member) error {
	if !l.mounts(m) {
		return nil
	}
	if err := l.inGuest(m, mountScript, MountPoint, l.MountOptions); err != nil {
		return fmt.Errorf("%s: mounting the volume: %w", m.name, err)
	}
	l.setUnclean(false)
	return nil
}

// mountScript waits for the driver of the range, which probes on its own.
const mountScript = `set -e
for try in $(seq 500); do [ -b /dev/pmem0 ] && break; sleep 0.02; done
mkdir -p "$1"
exec mount -t stargatefs ${2:+-o "$2"} /dev/pmem0 "$1"`

// inGuest runs a script of the rig's own; its output is part of the error.
func (l *Lab) inGuest(m *member, script string, args ...string) error {
	defer l.begin("the rig's own work in %s: %q", m.name, firstLine(script))()
	var out bytes.Buffer
	status, err := m.guest.Link.Run(append([]string{"bash", "-c", script, "rig"}, args...), nil, &out, &out)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, tail(m.guest.Console, 30))
	}
	if status != 0 {
		return fmt.Errorf("status %d: %s", status, strings.TrimSpace(out.String()))
	}
	return nil
}

// Kill cuts a guest's power.
func (l *Lab) Kill(name string) error {
	return l.withRunning(name, func(m *member) error {
		m.expected = true
		m.guest.Kill()
		if l.Mount {
			l.setUnclean(true)
		}
		return nil
	})
}

// panicLimit is how long a wanted panic may take to come, and then to be printed.
const panicLimit = time.Minute

// AwaitPanic waits until a guest's kernel has ended by a panic with a text in its message, which is
// what the script wanted. What it printed before must be as sound as ever.
func (l *Lab) AwaitPanic(name, text string) error {
	m, err := l.member(name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.guest == nil {
		return fmt.Errorf("%s has never run", name)
	}
	for deadline := time.Now().Add(panicLimit); m.guest.Alive(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s has not ended within %s", name, panicLimit)
		}
	}
	log, err := os.ReadFile(m.guest.Console)
	if err != nil {
		return err
	}
	before, after, found := strings.Cut(string(log), "Kernel panic - ")
	if !found || !strings.Contains(firstLine(after), text) {
		return fmt.Errorf("%s ended without a panic that says %q:\n%s", name, text, tail(m.guest.Console, 30))
	}
	if reports := klog.Find(before); reports != nil {
		return fmt.Errorf("%s: before its panic:\n%s", name, strings.Join(reports[0], "\n"))
	}
	m.expected = true
	m.panics[m.guest.Console] = true
	if l.Mount {
		l.setUnclean(true)
	}
	return nil
}

// Stop unmounts and then ends a guest.
func (l *Lab) Stop(name string) error {
	return l.withRunning(name, func(m *member) error {
		return l.shutDown(m)
	})
}

// Pause stops a guest's CPUs and clock.
func (l *Lab) Pause(name string) error {
	return l.withRunning(name, func(m *member) error {
		m.paused = true
		return m.guest.Pause()
	})
}

// Resume lets a paused guest go on.
func (l *Lab) Resume(name string) error {
	return l.withRunning(name, func(m *member) error {
		m.paused = false
		return m.guest.Resume()
	})
}

// Console returns what a guest's kernel has printed in its present life.
func (l *Lab) Console(name string) ([]byte, error) {
	m, err := l.member(name)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.consoles) == 0 {
		return nil, nil
	}
	return os.ReadFile(m.consoles[len(m.consoles)-1])
}

// Running returns a guest that can be spoken to.
func (l *Lab) Running(name string) (*vm.Guest, error) {
	var guest *vm.Guest
	err := l.withRunning(name, func(m *member) error {
		guest = m.guest
		return nil
	})
	return guest, err
}

func (l *Lab) withRunning(name string, do func(*member) error) error {
	m, err := l.member(name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.guest == nil || !m.guest.Alive() {
		return fmt.Errorf("%s is not running", name)
	}
	return do(m)
}

// KillAll ends all guests, whatever they are doing.
func (l *Lab) KillAll() {
	for _, name := range l.names {
		if guest := l.current(l.guests[name]); guest != nil {
			guest.Kill()
		}
	}
}

// current is for those who cannot wait for the guest's own lock: its holder
// may be waiting for the guest.
func (l *Lab) current(m *member) *vm.Guest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return m.guest
}

func (l *Lab) setUnclean(unclean bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unclean = unclean
}

// begin notes what is being waited for; the returned function ends that.
func (l *Lab) begin(format string, args ...interface{}) func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.activity++
	id := l.activity
	l.doing[id] = activity{fmt.Sprintf(format, args...), time.Now()}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.doing, id)
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// tail returns the last lines of a file, for messages.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\r\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
