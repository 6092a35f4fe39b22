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

// MountPoint is the guests' mount point of the volume.
const MountPoint = "/mnt/sg"

// Options are the user's choices for a run.
type Options struct {
	Guests       int
	Node         bool         // the guests run in a node, which is also a system
	Forgets      bool         // a power cut of the node loses the bytes of the range
	Format       func() error // makes the volume
	CPUs         int
	MemoryMiB    int
	Append       string // additional words for the guests' kernel command line
	Payload      string // tar archive for the guests
	Module       bool   // load the module that is in the payload
	Mount        bool   // mount the volume
	MountOptions string
	Guard        string     // stargatectl, to guard guests with; empty: no guards
	Shares       []vm.Share // each share is at /mnt/KIND in the guests
	Net          *vm.Net    // the network of the guests, or nil
	Bells        string     // socket of the exchange of doorbells, or empty
	Kept         string     // file of a disk that the only guest keeps, or empty
	Shared       bool       // several scripts use the guests, one after the other
}

// ModulePath is the path of a link to the guest's module. The payload has a module for each kernel.
const ModulePath = "/root/stargatefs.ko"

// ModuleFor returns the path of the module for a kernel in the payload.
func ModuleFor(release string) string { return ModulePath + "-" + release }

// Lab is a run's guests and their shared range.
type Lab struct {
	*Assets
	Options
	Dir   string // logs
	Range *vm.Range

	names   []string // of guests
	host    *member  // the node, or nil
	members map[string]*member
	lost    bool // a power cut of the node has lost the range's bytes; the node's lock protects lost

	mu       sync.Mutex
	damage   bool // the script expects that systems find damage in the volume
	doing    map[int]activity
	activity int
}

// member is a system of a run. A script may end it and start it again, so it can have several
// lives.
type member struct {
	name   string
	system system
	kernel int // the index of its kernel in the assets' systems

	mu        sync.Mutex // serializes changes of the member's state
	guest     *vm.Guest  // the last life's VM, or nil; changes need the lab's lock as well
	guard     *guard     // the current life's guard, or nil
	nodeGuard *guard     // the current life's guard that watches the node, or nil
	life      Life       // the arguments of the last start
	expected  bool       // the script has requested the end of the VM, if the VM has ended
	paused    bool
	spent     bool            // only a boot restores the VM's first state
	booted    guestState      // the state after the boot, if several scripts use the guest
	logs      int             // the number of logs so far
	consoles  []string        // the consoles of all lives that no verdict has judged yet
	judged    int64           // the length of the current console's part that was judged before
	panics    map[string]bool // the consoles that end in a panic, as the script expects
}

// activity is an operation for which a script waits.
type activity struct {
	what  string
	since time.Time
}

// New makes a lab. StartAll starts its guests.
func New(a *Assets, o Options, r *vm.Range, dir string) *Lab {
	l := &Lab{Assets: a, Options: o, Dir: dir, Range: r, members: map[string]*member{},
		doing: map[int]activity{}}
	if o.Node {
		l.host = &member{name: Host, system: a.node.system, panics: map[string]bool{}}
		l.members[Host] = l.host
	}
	for i := 1; i <= o.Guests; i++ {
		name := fmt.Sprintf("g%d", i)
		kernel := (i - 1) % len(a.systems)
		l.names = append(l.names, name)
		l.members[name] = &member{name: name, system: a.systems[kernel], kernel: kernel, panics: map[string]bool{}}
	}
	return l
}

// Guests returns the guests' names.
func (l *Lab) Guests() []string { return l.names }

// Systems returns the names of all systems that mount the volume: the node comes first.
func (l *Lab) Systems() []string {
	if l.host == nil {
		return l.names
	}
	return append([]string{Host}, l.names...)
}

func (l *Lab) member(name string) (*member, error) {
	m := l.members[name]
	if m == nil {
		return nil, fmt.Errorf("there is no %q: there are %s", name, strings.Join(l.Systems(), ", "))
	}
	return m, nil
}

// StartAll boots the node, if there is one, and then all guests at the same time. Then it mounts
// the volume in one guest after the other. A node without a mount has no memory for guests yet, so
// in that case the script starts the guests.
func (l *Lab) StartAll() error {
	if l.host != nil {
		if err := l.StartNode(); err != nil || !l.Mount {
			return err
		}
	}
	if err := l.together(l.boot); err != nil {
		return err
	}
	for _, name := range l.names {
		if err := l.mount(l.members[name]); err != nil {
			return err
		}
	}
	return nil
}

// together calls do for all guests at the same time.
func (l *Lab) together(do func(*member) error) error {
	if failures := l.failures(do); failures != nil {
		return errors.New(strings.Join(failures, "; "))
	}
	return nil
}

// failures calls do for all guests at the same time, and returns one text for each failed guest.
func (l *Lab) failures(do func(*member) error) []string {
	results := make([]error, len(l.names))
	var all sync.WaitGroup
	for i, name := range l.names {
		all.Add(1)
		go func(result *error, m *member) {
			defer all.Done()
			m.mu.Lock()
			defer m.mu.Unlock()
			*result = do(m)
		}(&results[i], l.members[name])
	}
	all.Wait()
	var failures []string
	for _, err := range results {
		if err != nil {
			failures = append(failures, err.Error())
		}
	}
	return failures
}

// Start boots a stopped guest, and mounts the volume there. The mount recovers the volume if
// necessary.
func (l *Lab) Start(name string, life Life) error {
	if err := l.notTheNode(name, "start_node boots it"); err != nil {
		return err
	}
	m, err := l.member(name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.guest != nil && m.guest.Alive() {
		return fmt.Errorf("%s is running already", name)
	}
	if life.Words != nil && !l.inNode(m) {
		return fmt.Errorf("%s: words for QEMU are for guests in a node", name)
	}
	if life.At != 0 && l.inNode(m) {
		return fmt.Errorf("%s: %s is not possible in a node, whose range has a fixed place", name, At)
	}
	m.life = life
	if err := l.boot(m); err != nil {
		return err
	}
	if life.NoMount {
		return nil
	}
	return l.mount(m)
}

// bootLimit is long enough for a debug kernel on a busy machine. A stock kernel boots in seconds.
const bootLimit = 5 * time.Minute

// bootTries is the number of attempts to boot a guest, if assertions of QEMU fail (boot).
const bootTries = 3

// boot starts a guest and loads the module. If an assertion of QEMU fails before the agent answers,
// the module is not the cause, so boot starts the guest again.
func (l *Lab) boot(m *member) error {
	for try := 1; ; try++ {
		err := l.bootOnce(m)
		if try == bootTries || !errors.Is(err, vm.ErrAssertion) {
			return err
		}
		say.Line("starting %s again: %s", m.name, err)
	}
}

func (l *Lab) bootOnce(m *member) error {
	start := time.Now()
	place, spec, err := l.plan(m)
	if err != nil {
		return err
	}
	console := l.logName(m, "console")
	m.consoles, m.judged = append(m.consoles, console), 0
	m.expected, m.paused, m.spent = false, false, false
	if m.guest != nil { // the previous life, whose guards may not have reported yet
		if err := l.guardsDone(m); err != nil {
			return err
		}
	}
	m.guard, m.nodeGuard = nil, nil
	guest, err := vm.Start(place, spec, console)
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	l.mu.Lock()
	m.guest = guest
	l.mu.Unlock()
	if l.Guard != "" {
		if err := l.startGuards(m, strings.TrimSuffix(console, "console")+"guard"); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if err := guest.WaitReady(bootLimit); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(console, 30))
	}
	if err := l.inGuest(m, rangesScript); err != nil {
		return fmt.Errorf("%s: waiting for its ranges: %w", m.name, err)
	}
	if err := l.load(m); err != nil {
		return err
	}
	for _, share := range l.Shares {
		modules, kind, source, options := share.MountWords()
		if err := l.inGuest(m, shareScript, share.Kind, modules, kind, source, options); err != nil {
			return fmt.Errorf("%s: mounting the share %s: %w", m.name, share.Kind, err)
		}
	}
	if l.Net != nil {
		if err := l.inGuest(m, netScript, l.Net.Address(m.name)); err != nil {
			return fmt.Errorf("%s: the network: %w", m.name, err)
		}
	}
	if l.Shared {
		if m.booted, err = l.state(m); err != nil {
			return err
		}
	}
	say.Line("%s is up after %.1f s", m.name, time.Since(start).Seconds())
	return nil
}

// plan returns a system's place and the description of its VM.
func (l *Lab) plan(m *member) (vm.Place, vm.Spec, error) {
	switch {
	case m == l.host:
		return l.QEMU, l.hostSpec(), nil
	case l.host != nil:
		return l.planInNode(m)
	}
	shared := l.Range
	if m.life.At != 0 {
		shared = shared.At(m.life.At)
	}
	return l.QEMU, vm.Spec{
		Name:      m.name,
		Accel:     l.Accel,
		Kernel:    m.system.Image,
		Initramfs: m.system.initramfs,
		Append:    l.Append,
		Disks:     vm.Disks{Root: l.root, Payload: l.Payload, Modules: m.system.modules, Kept: l.Kept},
		CPUs:      l.CPUs,
		MemoryMiB: l.MemoryMiB,
		Range:     shared,
		Shares:    l.Shares,
		Net:       l.Net,
		Bells:     l.Bells,
	}, nil
}

// rangesScript waits for the drivers of persistent memory, which probe asynchronously. After it,
// all their block devices exist.
const rangesScript = `set -e
for bus in /sys/bus/nd/devices/ndbus*; do
	[ ! -e "$bus/wait_probe" ] || read -r _ <"$bus/wait_probe"
done`

// loadScript loads a module that modprobe does not know, after the modules that it needs.
const loadScript = `set -e
[ -L "$1" ] || ln -s "$2" "$1"
for needed in $(modinfo -F depends "$1" | tr , ' '); do modprobe "$needed"; done
insmod "$1"`

// shareScript mounts a share. The shell splits the list of modules into words, as it must.
const shareScript = `set -e
modprobe -a $2
mkdir -p "/mnt/$1"
mount -t "$3" ${5:+-o "$5"} "$4" "/mnt/$1"`

// netScript gives the only interface its address, if it has one.
const netScript = `set -e
modprobe virtio_net
for try in $(seq 500); do [ -d /sys/class/net/eth0 ] && break; sleep 0.02; done
ip link set lo up
[ -z "$1" ] || ip address add "$1/24" dev eth0
ip link set eth0 up`

func (l *Lab) mount(m *member) error {
	if !l.Mount {
		return nil
	}
	if err := l.inGuest(m, mountScript, MountPoint, l.MountOptions); err != nil {
		return fmt.Errorf("%s: mounting the volume: %w", m.name, err)
	}
	return nil
}

const mountScript = `set -e
mkdir -p "$1"
exec mount -t stargatefs ${2:+-o "$2"} /dev/pmem0 "$1"`

// inGuest runs a script of the rig itself in a guest. An error contains the script's output.
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

// Kill cuts a guest's power, and waits until the guest's guard has reported this.
func (l *Lab) Kill(name string) error {
	if err := l.notTheNode(name, "use kill_node"); err != nil {
		return err
	}
	return l.withRunning(name, func(m *member) error {
		m.expected = true
		m.guest.Kill()
		return l.guardsDone(m)
	})
}

// panicLimit is the time limit for an expected panic, until the guest has ended.
const panicLimit = time.Minute

// AwaitPanic waits until a guest's kernel has panicked, as the script expects. The panic's message
// must contain the text. The log before the panic must have no errors.
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
	before, after, found := strings.Cut(string(m.unjudged(m.guest.Console, log)), "Kernel panic - ")
	if !found || !strings.Contains(firstLine(after), text) {
		return fmt.Errorf("%s ended without a panic that says %q:\n%s", name, text, tail(m.guest.Console, 30))
	}
	if reports := klog.Find(before); reports != nil {
		return fmt.Errorf("%s: before its panic:\n%s", name, strings.Join(reports[0], "\n"))
	}
	m.expected = true
	m.panics[m.guest.Console] = true
	return l.guardsDone(m)
}

// Stop unmounts the volume in a guest, and then ends the guest.
func (l *Lab) Stop(name string) error {
	if err := l.notTheNode(name, "it ends at the end of the run, or with kill_node"); err != nil {
		return err
	}
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

// MachineCheck injects a machine check for an error in memory or elsewhere into a guest's
// processor.
func (l *Lab) MachineCheck(name string, words []string) error {
	if len(words) != 5 {
		return errors.New("usage: machine_check GUEST BANK STATUS GLOBAL-STATUS ADDRESS MISC")
	}
	return l.withRunning(name, func(m *member) error {
		m.spent = true
		return m.guest.MachineCheck(words)
	})
}

// Resume lets a paused guest run again.
func (l *Lab) Resume(name string) error {
	return l.withRunning(name, func(m *member) error {
		m.paused = false
		return m.guest.Resume()
	})
}

// Console returns the messages that a guest's kernel has printed in its current life, during the
// current script.
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
	console := m.consoles[len(m.consoles)-1]
	log, err := os.ReadFile(console)
	if err != nil {
		return nil, err
	}
	return m.unjudged(console, log), nil
}

// Running returns the VM of a guest, whose agent answers.
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

// KillAll ends all guests, in any state. It ends the node first, because the node's guests end with
// it.
func (l *Lab) KillAll() {
	for _, name := range l.Systems() {
		if guest := l.current(l.members[name]); guest != nil {
			guest.Kill()
		}
	}
}

// current returns a guest's VM, or nil. Its callers cannot wait for the guest's lock, because the
// lock's holder may wait for the guest.
func (l *Lab) current(m *member) *vm.Guest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return m.guest
}

// ExpectDamage records that the script's systems will find damage in the volume.
func (l *Lab) ExpectDamage() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.damage = true
}

func (l *Lab) damageSeen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.damage
}

// logName returns a file name for another log of a guest.
func (l *Lab) logName(m *member, kind string) string {
	m.logs++
	return filepath.Join(l.Dir, fmt.Sprintf("%s.%d.%s", m.name, m.logs, kind))
}

// begin records an operation in progress; the returned function ends it.
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

// tail returns the last lines of a file, for error messages.
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
