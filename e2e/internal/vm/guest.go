// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"stargate/e2e/internal/wire"
)

// Guest is a running virtual machine.
type Guest struct {
	Spec    Spec
	UUID    string
	Link    *wire.Link
	Console string // the file with the kernel's messages

	monitor *monitor
	machine
}

// Place is where VMs run: on this host, or in a node, which is a VM itself.
type Place interface {
	// launch starts QEMU for a VM with that UUID.
	launch(spec Spec, uuid, console string) (machine, error)
}

// machine is a running QEMU at any place. Its two connections to the rig end with it.
type machine struct {
	pid              int // QEMU's process on this host; 0 in a node
	monitor, channel net.Conn
	said             *bytes.Buffer // QEMU's own messages; valid after its end
	ended            chan struct{} // closed when QEMU has ended
	kill             func()
}

// Start starts a guest at a place. QEMU writes the guest's console to the file console. That file's
// folder identifies the run.
func Start(p Place, spec Spec, console string) (*Guest, error) {
	uuid := UUID(filepath.Dir(console), spec.Name)
	m, err := p.launch(spec, uuid, console)
	if err != nil {
		return nil, fmt.Errorf("starting QEMU: %w", err)
	}
	g := &Guest{Spec: spec, UUID: uuid, Console: console, machine: m, Link: wire.NewLink(m.channel)}
	if g.monitor, err = newMonitor(m.monitor); err != nil {
		g.Kill()
		return nil, fmt.Errorf("%w: %s", err, g.Errors())
	}
	return g, nil
}

// ErrAssertion means that an assertion of QEMU has failed. This happens rarely, when QEMU 10.0
// emulates a guest with several processors (iotlb_to_section).
var ErrAssertion = errors.New("QEMU failed by an assertion of its own")

// WaitReady waits until the agent answers.
func (g *Guest) WaitReady(limit time.Duration) error {
	select {
	case <-g.Link.Ready():
		return nil
	case <-g.ended:
		said := g.Errors()
		if strings.HasPrefix(said, "qemu-system-") && strings.Contains(said, ": Assertion `") {
			return fmt.Errorf("%s ended while booting: %w: %s", g.Spec.Name, ErrAssertion, said)
		}
		return fmt.Errorf("%s ended while booting: %s", g.Spec.Name, said)
	case <-time.After(limit):
		return fmt.Errorf("%s did not boot within %s", g.Spec.Name, limit)
	}
}

// Errors returns QEMU's own messages. Call it only after QEMU's end.
func (g *Guest) Errors() string { return strings.TrimSpace(g.said.String()) }

// PID returns QEMU's process on this host, or 0 in a node.
func (g *Guest) PID() int { return g.pid }

// Ended returns a channel that is closed when the VM has ended.
func (g *Guest) Ended() <-chan struct{} { return g.ended }

// Alive reports whether the VM is running.
func (g *Guest) Alive() bool {
	select {
	case <-g.ended:
		return false
	default:
		return true
	}
}

// Kill cuts the VM's power, and waits until it has ended.
func (g *Guest) Kill() {
	g.kill()
	<-g.ended
}

// Pause stops the VM and its clock.
func (g *Guest) Pause() error { return g.monitor.execute("stop") }

// MachineCheck makes the first processor report an error. The words are the bank, the status, the
// global status, the address, and the bank's register MISC.
func (g *Guest) MachineCheck(words []string) error {
	return g.monitor.human("mce 0 " + strings.Join(words, " "))
}

// Resume lets a paused VM run again.
func (g *Guest) Resume() error { return g.monitor.execute("cont") }
