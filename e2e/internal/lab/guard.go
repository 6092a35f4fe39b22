// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"stargate/e2e/internal/proc"
	"stargate/e2e/internal/vm"
	"stargate/e2e/internal/wire"
)

// guard is the `stargatectl guard` of one life of a guest. By it the other systems know whether the
// guest is dead or only paused.
type guard struct {
	log       string
	terminate func()        // makes the guard end
	dismissed bool          // the lab has called terminate
	ended     chan struct{} // closed when the guard has ended
	err       error         // the guard's result; valid after its end
}

// startGuards starts guards for a VM that has just started. A VM in a node has two guards: one in
// the node, and one on this host, which watches the node, because the VM ends with the node.
func (l *Lab) startGuards(m *member, log string) (err error) {
	if !l.inNode(m) {
		m.guard, err = l.guardHere(m.guest.PID(), m.guest.UUID, log)
		return err
	}
	if m.guard, err = l.guardInNode(m.name, m.guest.UUID, log); err == nil {
		m.nodeGuard, err = l.guardHere(l.current(l.host).PID(), m.guest.UUID, log+".node")
	}
	return err
}

// guardHere watches a process of this host.
func (l *Lab) guardHere(pid int, uuid, log string) (*guard, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(l.Guard, "guard", "--pid", fmt.Sprint(pid), "--machine", uuid, l.Range.Path())
	cmd.Stdout, cmd.Stderr = out, out
	if err := proc.Start(cmd, syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	g := &guard{log: log, ended: make(chan struct{})}
	// An error means that the guard has already ended, which await reports.
	g.terminate = func() { _ = cmd.Process.Signal(syscall.SIGTERM) }
	go func() {
		g.err = cmd.Wait()
		close(g.ended)
	}()
	return g, nil
}

// guardInNode runs in the node, and watches the QEMU of a VM there.
func (l *Lab) guardInNode(name, uuid, log string) (*guard, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	script := `exec stargatectl guard --pid "$(cat "$1")" --machine "$2" "$3"`
	words := []string{"bash", "-c", script, "rig", vm.NodeRun + "/" + name + ".pid", uuid, regionPath}
	cmd, err := l.current(l.host).Link.Start(words, nil, out, out)
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("starting the guard in the node: %w", err)
	}
	g := &guard{log: log, ended: make(chan struct{})}
	g.terminate = func() { cmd.Signal(syscall.SIGTERM) }
	go func() {
		defer close(g.ended)
		defer out.Close()
		status, err := cmd.Wait()
		if err == nil && status != 0 {
			err = fmt.Errorf("status %d", status)
		}
		if !errors.Is(err, wire.ErrGone) { // else the node has ended, which the other guard reports
			g.err = err
		}
	}()
	return g, nil
}

// guardLimit is long enough for a busy machine. A guard usually needs milliseconds. If a guest ends
// during its mount, the guard needs two seconds.
const guardLimit = 30 * time.Second

// await waits until the guard of an ended VM has reported its end.
func (g *guard) await() error {
	if g == nil {
		return nil
	}
	if err := g.gone(); err != nil {
		return err
	}
	if g.err == nil || g.dismissed {
		return nil
	}
	return fmt.Errorf("its guard: %w: %s", g.err, strings.TrimSpace(tail(g.log, 10)))
}

// gone waits until the guard has ended, and ignores the guard's result.
func (g *guard) gone() error {
	if g == nil {
		return nil
	}
	select {
	case <-g.ended:
		return nil
	case <-time.After(guardLimit):
		return fmt.Errorf("its guard has not ended within %s", guardLimit)
	}
}

// dismiss ends a guard. The VM continues without a guard.
func (g *guard) dismiss() error {
	if g == nil || g.dismissed {
		return nil
	}
	g.dismissed = true
	g.terminate()
	return g.await()
}

// guardsDone waits until the guards of an ended guest have reported. The guard that watches the
// node reports nothing while the node runs.
func (l *Lab) guardsDone(m *member) error {
	err := m.guard.await()
	if err == nil && l.inNode(m) && l.current(l.host).Alive() {
		err = m.nodeGuard.dismiss()
	}
	if err == nil {
		err = m.nodeGuard.await()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return nil
}

// Unguard removes a guest's guards. Then only the guest's heartbeat shows whether it is live.
func (l *Lab) Unguard(name string) error {
	return l.withRunning(name, func(m *member) error {
		if m.guard == nil || m.guard.dismissed {
			return fmt.Errorf("%s has no guard", name)
		}
		for _, g := range []*guard{m.guard, m.nodeGuard} {
			if err := g.dismiss(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}
