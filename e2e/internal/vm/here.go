// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"syscall"

	"stargate/e2e/internal/proc"
)

// Descriptors that QEMU inherits.
const (
	fdRange = 3 + iota
	fdMonitor
	fdChannel
	fdShares // the first descriptor of the shares' servers
)

// launch runs QEMU on this host. QEMU inherits all its connections.
func (q QEMU) launch(spec Spec, uuid, console string) (m machine, err error) {
	var theirs [2]*os.File
	if m.monitor, theirs[0], err = socketPair(); err != nil {
		return m, err
	}
	defer theirs[0].Close()
	if m.channel, theirs[1], err = socketPair(); err != nil {
		m.monitor.Close()
		return m, err
	}
	defer theirs[1].Close()
	if err = q.start(&m, spec, uuid, console, theirs); err != nil {
		m.monitor.Close()
		m.channel.Close()
	}
	return m, err
}

func (q QEMU) start(m *machine, spec Spec, uuid, console string, theirs [2]*os.File) error {
	connections, err := q.serveAll(spec, console)
	if err != nil {
		return err
	}
	defer closeAll(connections)
	cmd := q.command(program, spec.args(q, uuid, here(console))...)
	m.said = &bytes.Buffer{}
	cmd.Stderr = m.said
	memory := os.Stderr // without a range: any descriptor, so that the others keep their numbers
	if spec.Range != nil {
		memory = spec.Range.File
	}
	cmd.ExtraFiles = append([]*os.File{memory, theirs[0], theirs[1]}, connections...)
	if err := proc.Start(cmd, syscall.SIGKILL); err != nil {
		return err
	}
	m.pid, m.ended = cmd.Process.Pid, make(chan struct{})
	m.kill = func() { _ = cmd.Process.Kill() } // fails if QEMU has already ended, which is fine
	go func(ended chan struct{}, monitor, channel net.Conn) {
		// The status does not matter: QEMU's output shows why it has ended.
		_ = cmd.Wait()
		close(ended)
		monitor.Close()
		channel.Close()
	}(m.ended, m.monitor, m.channel)
	return nil
}

func here(console string) ends {
	return ends{
		console: "path=" + quoted(console),
		monitor: fmt.Sprintf("fd=%d", fdMonitor),
		channel: fmt.Sprintf("fd=%d", fdChannel),
		memory:  fmt.Sprintf("/proc/self/fd/%d", fdRange),
	}
}

// socketPair makes a connection. QEMU inherits the second end.
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
