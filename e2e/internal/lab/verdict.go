// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"stargate/e2e/internal/klog"
	"stargate/e2e/internal/vm"
)

// Finish shuts the guests down, and returns the errors of the run. fsck is the path of
// fsck.stargatefs, or empty.
func (l *Lab) Finish(fsck string) []string { return l.judge(fsck, l.shutDown) }

// judge calls end for each running guest, and returns the errors.
func (l *Lab) judge(fsck string, end func(*member) error) []string {
	wrong := l.failures(func(m *member) error { return l.end(m, end) })
	if l.host != nil { // the node ends after its guests
		l.host.mu.Lock()
		if err := l.end(l.host, end); err != nil {
			wrong = append(wrong, err.Error())
		}
		l.host.mu.Unlock()
	}
	for _, name := range l.Systems() {
		wrong = append(wrong, reports(l.members[name])...)
	}
	if fsck != "" && !l.lost {
		if err := checkVolume(fsck, l.Range.Path(), l.damageSeen()); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	return wrong
}

// end calls by for a running guest. If the guest has ended without a request, end returns an error.
func (l *Lab) end(m *member, by func(*member) error) error {
	if m.guest == nil {
		return nil
	}
	if !m.guest.Alive() {
		if m.expected {
			return l.guardsDone(m)
		}
		if l.inNode(m) && !l.current(l.host).Alive() {
			return nil // the node has ended without a request, and its own error reports that
		}
		return fmt.Errorf("%s ended by itself; the end of its console:\n%s", m.name, tail(m.guest.Console, 30))
	}
	if m.paused {
		if err := m.guest.Resume(); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		m.paused = false
	}
	return by(m)
}

// endLimit is the time limit for the unmount in a guest.
const endLimit = 2 * time.Minute

// shutDown unmounts the volume in a guest (settle), and shuts the guest down.
func (l *Lab) shutDown(m *member) error {
	err := l.settle(m)
	m.expected = true
	m.guest.Kill()
	if err == nil {
		err = l.guardsDone(m)
	}
	return err
}

// settle unmounts the volume, unloads the module, and waits until the console has all messages of
// the kernel.
func (l *Lab) settle(m *member) error {
	if m == l.host && l.Bells != "" {
		if err := l.inGuest(m, endBells, l.Bells); err != nil {
			return fmt.Errorf("%s: ending the exchange of doorbells: %w", m.name, err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- l.inGuest(m, endScript, MountPoint) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(endLimit):
		err = fmt.Errorf("the script has not ended within %s", endLimit)
		askWhere(m.guest)
	}
	if err != nil {
		err = fmt.Errorf("%s: unmounting and unloading: %w", m.name, err)
	} else if err = awaitText(m.guest.Console, m.judged, endMarker, logLimit); err != nil {
		err = fmt.Errorf("%s: its kernel log was not read to its end: %w", m.name, err)
	}
	return err
}

// endMarker is the last line that the rig expects on a console.
const endMarker = "rig: end of the log"

// endScript kills processes that the script has left, unmounts the volume, and unloads the module.
// A module that is still in use is an error. If the kernel looks for leaks of memory, a leak is an
// error, too.
const endScript = `set -e
for dir in /proc/[0-9]*; do
	pid=${dir#/proc/}
	case $pid in 1|$$|$PPID) continue;; esac
	if [ -e $dir/exe ]; then kill -9 $pid 2>/dev/null || true; fi # kernel threads have no exe
done
while mountpoint -q "$1"; do umount "$1"; done
leaks=/sys/kernel/debug/kmemleak
if [ -e $leaks ]; then
	sleep 6; echo scan >$leaks; echo scan >$leaks
	if [ -n "$(head -c 1 $leaks)" ]; then cat $leaks; exit 1; fi
fi
if [ -e /sys/module/stargatefs ]; then rmmod stargatefs; fi
echo "<5>` + endMarker + `" >/dev/kmsg`

// logLimit is the time limit in which a kernel must print the messages that it has already logged.
const logLimit = time.Minute

// awaitText waits until a file has the text after its known part. If the text does not appear
// within the limit, awaitText returns an error, because the log is incomplete.
func awaitText(path string, known int64, text string, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		data, err := os.ReadFile(path)
		if err == nil && int64(len(data)) >= known && bytes.Contains(data[known:], []byte(text)) {
			return nil
		}
		if time.Now().After(deadline) {
			if err == nil {
				err = fmt.Errorf("no %q within %s", text, limit)
			}
			return err
		}
	}
}

// reports returns the errors in the kernel logs of all lives of a guest.
func reports(m *member) []string {
	var wrong []string
	for _, console := range m.consoles {
		if m.panics[console] {
			continue // AwaitPanic has checked it
		}
		log, err := os.ReadFile(console)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: its console: %v", m.name, err))
			continue
		}
		for _, report := range klog.Find(string(m.unjudged(console, log))) {
			wrong = append(wrong, fmt.Sprintf("%s: kernel log (%s):\n%s",
				m.name, filepath.Base(console), strings.Join(report, "\n")))
		}
	}
	return wrong
}

// Where describes the state of a run that has reached its time limit: the pending requests with
// their durations, and the stacks of the guests' blocked tasks.
func (l *Lab) Where() string {
	var text strings.Builder
	l.mu.Lock()
	for _, a := range l.doing {
		fmt.Fprintf(&text, "for %.0f s: %s\n", time.Since(a.since).Seconds(), a.what)
	}
	l.mu.Unlock()
	for _, name := range l.Systems() {
		guest := l.current(l.members[name])
		if guest == nil || !guest.Alive() {
			fmt.Fprintf(&text, "%s is not running\n", name)
			continue
		}
		askWhere(guest)
		fmt.Fprintf(&text, "%s, the end of its console:\n%s\n", name, tail(guest.Console, 60))
	}
	return text.String()
}

// askWhere makes a guest's kernel print the state of its CPUs, and its blocked tasks.
func askWhere(guest *vm.Guest) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		var out bytes.Buffer
		_, _ = guest.Link.Run([]string{"bash", "-c", "echo l >/proc/sysrq-trigger; echo w >/proc/sysrq-trigger"}, nil, &out, &out)
	}()
	select {
	case <-done:
		time.Sleep(time.Second) // the serial line is slow
	case <-time.After(10 * time.Second):
	}
}
