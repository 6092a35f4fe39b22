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
	Console string // file with its kernel messages

	monitor *monitor
	machine
}

// Place is where VMs run: on this host, or in a node, which is a VM itself.
type Place interface {
	// launch starts QEMU for a VM of that identity.
	launch(spec Spec, uuid, console string) (machine, error)
}

// machine is a running QEMU at any place, with its two connections to the rig, which end with it.
type machine struct {
	pid              int // its process, if on this host; else 0
	monitor, channel net.Conn
	said             *bytes.Buffer // by QEMU itself; read it after ended
	ended            chan struct{} // closed when QEMU has
	kill             func()
}

// Start starts a guest at a place. Its console is written to the named file, whose folder
// identifies the run.
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

// ErrAssertion means that an assertion of QEMU has failed. QEMU 10.0 does so rarely when it
// translates a guest with several processors (iotlb_to_section).
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

// Errors is the output of QEMU itself; it must have ended.
func (g *Guest) Errors() string { return strings.TrimSpace(g.said.String()) }

// PID is QEMU's process, if it runs here and not in a node.
func (g *Guest) PID() int { return g.pid }

// Ended is closed when the VM has ended.
func (g *Guest) Ended() <-chan struct{} { return g.ended }

// Alive tells whether the VM is running.
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

// Pause stops the VM, its clock included.
func (g *Guest) Pause() error { return g.monitor.execute("stop") }

// MachineCheck makes the first processor find an error: the words are bank, status, global status,
// address and the bank's further register.
func (g *Guest) MachineCheck(words []string) error {
	return g.monitor.human("mce 0 " + strings.Join(words, " "))
}

// Resume continues a paused VM.
func (g *Guest) Resume() error { return g.monitor.execute("cont") }
