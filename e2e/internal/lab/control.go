// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"stargate/e2e/internal/wire"
)

// Verbs of a script's functions. A request without a verb runs a command in a guest.
const (
	VerbKill    = "kill_guest"
	VerbStart   = "start_guest"
	VerbStop    = "stop_guest"
	VerbPause   = "pause_guest"
	VerbResume  = "resume_guest"
	VerbPanic   = "await_panic"
	VerbUnguard = "unguard_guest"
	VerbCheck   = "machine_check"
	VerbConsole = "console"
	VerbDamage  = "expect_damage"

	VerbKillNode  = "kill_node"
	VerbStartNode = "start_node"
	VerbReboot    = "await_reboot"
)

// Arguments of VerbStart. With NoMount, the guest boots, but does not mount the volume. At and an
// address give the range another address. They are only for guests outside of a node. The words
// after -- are only for guests in a node: QEMU gets them, and they describe the guest's range.
const (
	NoMount = "--no-mount"
	At      = "--at"
)

// Life describes how to boot a guest.
type Life struct {
	NoMount bool
	At      int64    // the address of the guest's range; 0: the usual address
	Words   []string // QEMU's words for the range of a guest in a node; nil: the usual words
}

// startArguments reads the arguments of VerbStart.
func startArguments(args []string) (life Life, err error) {
	for len(args) > 0 {
		switch {
		case args[0] == NoMount:
			life.NoMount = true
		case args[0] == At && len(args) > 1:
			args = args[1:]
			if life.At, err = strconv.ParseInt(args[0], 0, 64); err != nil || life.At <= 0 {
				return Life{}, fmt.Errorf("%s: %s %q is not an address", VerbStart, At, args[0])
			}
		case args[0] == "--" && len(args) > 1:
			life.Words = args[1:]
			return life, nil
		default:
			return Life{}, fmt.Errorf("%s: %q: [%s] [%s ADDRESS] [-- WORDS FOR QEMU]", VerbStart, args[0], NoMount, At)
		}
		args = args[1:]
	}
	return life, nil
}

// Serve executes the calls of the script's functions until the listener is closed.
func (l *Lab) Serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			l.answer(conn)
		}()
	}
}

// gone is the status of a command whose guest has ended. ssh returns the same status.
const gone = 255

func (l *Lab) answer(conn net.Conn) {
	first, err := wire.Read(conn)
	if err != nil {
		return // the client has disconnected
	}
	request, err := first.Request()
	if err == nil && request.Verb == "" {
		err = l.forward(conn, request)
		if err == nil {
			return
		}
		finish(conn, gone, err)
		return
	}
	if err == nil {
		err = l.act(conn, request)
	}
	var status uint32
	if err != nil {
		status = 1
	}
	finish(conn, status, err)
}

func (l *Lab) forward(conn net.Conn, request wire.Request) error {
	guest, err := l.Running(request.Guest)
	if err != nil {
		return err
	}
	defer l.begin("on %s %q", request.Guest, strings.Join(request.Args, " "))()
	err = guest.Link.Forward(request, conn)
	if err != nil {
		return fmt.Errorf("%s: %w", request.Guest, err)
	}
	return nil
}

func (l *Lab) act(conn net.Conn, r wire.Request) error {
	defer l.begin("%s %s", r.Verb, r.Guest)()
	switch r.Verb {
	case VerbKill:
		return l.Kill(r.Guest)
	case VerbStop:
		return l.Stop(r.Guest)
	case VerbStart:
		life, err := startArguments(r.Args)
		if err != nil {
			return err
		}
		return l.Start(r.Guest, life)
	case VerbPause:
		return l.Pause(r.Guest)
	case VerbResume:
		return l.Resume(r.Guest)
	case VerbCheck:
		return l.MachineCheck(r.Guest, r.Args)
	case VerbUnguard:
		return l.Unguard(r.Guest)
	case VerbKillNode:
		return l.KillNode()
	case VerbStartNode:
		return l.StartNode()
	case VerbReboot:
		return l.AwaitReboot()
	case VerbDamage:
		l.ExpectDamage()
		return nil
	case VerbPanic:
		return l.AwaitPanic(r.Guest, strings.Join(r.Args, " "))
	case VerbConsole:
		text, err := l.Console(r.Guest)
		if err != nil {
			return err
		}
		return sendText(conn, text)
	}
	return fmt.Errorf("unknown request %q", r.Verb)
}

// sendText sends output to a client. It needs no credits, because the connection has one session.
func sendText(conn net.Conn, text []byte) error {
	out := wire.NewWriter(conn)
	for len(text) > 0 {
		n := len(text)
		if n > wire.MaxData {
			n = wire.MaxData
		}
		if err := out.Send(wire.Frame{Kind: wire.Stdout, Data: text[:n]}); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// finish sends the result to the client, and gives the client time to read it before the connection
// ends.
func finish(conn net.Conn, status uint32, err error) {
	out := wire.NewWriter(conn)
	if err != nil {
		message := "rig: " + err.Error() + "\n"
		if len(message) > wire.MaxData {
			message = message[:wire.MaxData]
		}
		_ = out.Send(wire.Frame{Kind: wire.Stderr, Data: []byte(message)})
	}
	_ = out.Send(wire.Frame{Kind: wire.Exit, Data: wire.Numbers(status)})
	// The client closes the connection. If its acknowledgements stayed unread, the connection
	// could be reset before the client has read the result.
	if conn.SetReadDeadline(time.Now().Add(10*time.Second)) != nil {
		return
	}
	for {
		if _, err := wire.Read(conn); err != nil {
			return
		}
	}
}
