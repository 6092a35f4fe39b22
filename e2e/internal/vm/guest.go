// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"stargate/e2e/internal/proc"
	"stargate/e2e/internal/wire"
)

// Guest is a running virtual machine.
type Guest struct {
	Spec    Spec
	Link    *wire.Link
	Console string // file with what its kernel printed

	cmd     *exec.Cmd
	monitor *monitor
	errors  bytes.Buffer  // what QEMU itself says; read it after ended
	ended   chan struct{} // closed when QEMU has
}

// Start starts a guest. Its console is written to the file named.
func (q QEMU) Start(spec Spec, console string) (*Guest, error) {
	monitorOurs, monitorTheirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer monitorTheirs.Close()
	channelOurs, channelTheirs, err := socketPair()
	if err != nil {
		monitorOurs.Close()
		return nil, err
	}
	defer channelTheirs.Close()

	g := &Guest{Spec: spec, Console: console, ended: make(chan struct{})}
	g.cmd = q.command("usr/bin/qemu-system-x86_64", spec.args(q, console)...)
	g.cmd.Stderr = &g.errors
	memory := os.Stderr // any descriptor, to keep the numbers of the others
	if spec.Range != nil {
		memory = spec.Range.File
	}
	g.cmd.ExtraFiles = []*os.File{memory, monitorTheirs, channelTheirs}
	if err := proc.Start(g.cmd, syscall.SIGKILL); err != nil {
		monitorOurs.Close()
		channelOurs.Close()
		return nil, fmt.Errorf("starting QEMU: %w", err)
	}
	go func() {
		// How it ended is told by what it wrote, and by who asked for it.
		_ = g.cmd.Wait()
		close(g.ended)
		monitorOurs.Close()
		channelOurs.Close()
	}()
	g.Link = wire.NewLink(channelOurs)
	if g.monitor, err = newMonitor(monitorOurs); err != nil {
		g.Kill()
		return nil, fmt.Errorf("%w: %s", err, g.Errors())
	}
	return g, nil
}

// socketPair makes a connection of which QEMU inherits one end.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// WaitReady waits until the agent answers.
func (g *Guest) WaitReady(limit time.Duration) error {
	select {
	case <-g.Link.Ready():
		return nil
	case <-g.ended:
		return fmt.Errorf("%s ended while booting: %s", g.Spec.Name, g.Errors())
	case <-time.After(limit):
		return fmt.Errorf("%s did not boot within %s", g.Spec.Name, limit)
	}
}

// Errors is what QEMU itself said; it must have ended.
func (g *Guest) Errors() string { return strings.TrimSpace(g.errors.String()) }

// Ended is closed when the machine is no more.
func (g *Guest) Ended() <-chan struct{} { return g.ended }

// Alive tells whether the machine is there.
func (g *Guest) Alive() bool {
	select {
	case <-g.ended:
		return false
	default:
		return true
	}
}

// Kill takes the machine's power, and waits until it is gone.
func (g *Guest) Kill() {
	// The process may have ended by itself, which is as good.
	_ = g.cmd.Process.Kill()
	<-g.ended
}

// Pause stops the machine, its clock included.
func (g *Guest) Pause() error { return g.monitor.execute("stop") }

// Resume lets a paused machine go on.
func (g *Guest) Resume() error { return g.monitor.execute("cont") }
