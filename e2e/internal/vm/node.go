// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"io"
	"net"
	"os"
	"syscall"

	"stargate/e2e/internal/agent"
	"stargate/e2e/internal/wire"
)

// Node is a guest in which other VMs run. All their connections to us go through the node's own
// channel. Its agent runs QEMU, whose output is the VM's console, and a program that connects each
// socket of QEMU to us.
type Node struct {
	Link   *wire.Link
	QEMU   QEMU   // its copy in the node
	Memory string // path of the shared range in the node: of .stargate/region
}

// NodeRun is the node's folder for files of its VMs: the number of QEMU's process is in NAME.pid.
const NodeRun = "/run/rig"

// inNode starts QEMU: it stays the process whose number is noted.
const inNode = `echo $$ >"$1" && shift && exec "$@"`

func (n Node) launch(spec Spec, uuid, console string) (m machine, err error) {
	out, err := os.Create(console)
	if err != nil {
		return m, err
	}
	base := NodeRun + "/" + spec.Name
	words := append([]string{"bash", "-c", inNode, "rig", base + ".pid", "env"}, n.QEMU.environment()...)
	words = append(words, n.QEMU.words(program, spec.args(n.QEMU, uuid, n.within(base, uuid))...)...)
	m.said = &bytes.Buffer{}
	qemu, err := n.Link.Start(words, nil, out, m.said)
	if err != nil {
		out.Close()
		return m, err
	}
	m.kill = func() { qemu.Signal(syscall.SIGKILL) }
	m.ended = make(chan struct{})
	monitor, channel := n.join(base+".monitor"), n.join(base+".channel")
	m.monitor, m.channel = monitor.conn, channel.conn
	go func(ended chan struct{}) {
		<-qemu.Ended()
		out.Close()
		close(ended)
		monitor.end()
		channel.end()
	}(m.ended)
	return m, nil
}

// within: QEMU waits until a client has connected to its sockets, because earlier output would be
// lost. It opens the range by the VM's name, so that the node's module knows which systems are dead
// when QEMU ends.
func (n Node) within(base, uuid string) ends {
	return ends{
		console: "path=/dev/stdout",
		monitor: "path=" + quoted(base) + ".monitor,server=on,wait=on",
		channel: "path=" + quoted(base) + ".channel,server=on,wait=on",
		memory:  n.Memory + "@" + uuid,
	}
}

// joint is a connection with a socket in the node.
type joint struct {
	conn    net.Conn
	theirs  net.Conn
	command *wire.Command // nil: it could not be started
}

func (n Node) join(path string) joint {
	var j joint
	var err error
	j.conn, j.theirs = net.Pipe()
	j.command, err = n.Link.Start([]string{agent.Program, agent.JoinCommand, path}, j.theirs, j.theirs, io.Discard)
	if err != nil {
		j.end()
		return j
	}
	go func() {
		<-j.command.Ended()
		j.theirs.Close()
	}()
	return j
}

// end: all output is read to its end, then there is nothing more.
func (j joint) end() {
	if j.command != nil {
		j.command.Signal(syscall.SIGKILL)
	}
	j.theirs.Close()
	j.conn.Close()
}
