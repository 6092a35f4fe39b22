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

// Node is a guest in which other VMs run. All connections of these VMs to the rig go through the
// node's own channel. The node's agent runs QEMU, whose output is the VM's console. For each socket
// of QEMU, it also runs a program that connects the socket to the rig.
type Node struct {
	Link   *wire.Link
	QEMU   QEMU   // the copy of QEMU in the node
	Memory string // the path of the shared range in the node: that of .stargate/region
}

// NodeRun is the node's folder for files of its VMs. NAME.pid has the process number of QEMU.
const NodeRun = "/run/rig"

// inNode writes its process number to a file, and then becomes QEMU.
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

// within returns QEMU's connections in a node. QEMU waits until a client has connected to its
// sockets, because earlier output would be lost. QEMU opens the range by the VM's UUID, so that the
// node's module knows which systems are dead when QEMU ends.
func (n Node) within(base, uuid string) ends {
	return ends{
		console: "path=/dev/stdout",
		monitor: "path=" + quoted(base) + ".monitor,server=on,wait=on",
		channel: "path=" + quoted(base) + ".channel,server=on,wait=on",
		memory:  n.Memory + "@" + uuid,
	}
}

// joint is a connection from the rig to a socket in the node.
type joint struct {
	conn    net.Conn
	theirs  net.Conn
	command *wire.Command // the program that connects both; nil if it could not start
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

// end ends the program, and closes both ends of the connection.
func (j joint) end() {
	if j.command != nil {
		j.command.Signal(syscall.SIGKILL)
	}
	j.theirs.Close()
	j.conn.Close()
}
