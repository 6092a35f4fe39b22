// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"stargate/e2e/internal/wire"
)

// session is one command and its streams.
type session struct {
	id      uint32
	out     *wire.Writer
	input   chan wire.Frame // Stdin and EOF
	credits wire.Credits    // for output
	done    chan struct{}   // closed when the command's output is complete
	killed  bool            // the client has disconnected, perhaps before the command's start

	mu      sync.Mutex
	process *os.Process
	tty     *os.File
}

func newSession(id uint32, out *wire.Writer) *session {
	return &session{id: id, out: out, input: wire.Queue(), credits: wire.NewCredits(), done: make(chan struct{})}
}

// handle handles a frame from the client. It never blocks.
func (s *session) handle(f wire.Frame) {
	switch f.Kind {
	case wire.Stdin, wire.EOF:
		s.input <- f
	case wire.Ack:
		s.credits.Give()
	case wire.Signal:
		s.signal(syscall.Signal(f.Number(0)))
	case wire.Resize:
		s.resize(f.Number(0), f.Number(1))
	case wire.Close:
		s.signal(syscall.SIGKILL)
	}
}

// signal sends a signal to the command and all its children, which are one process group.
func (s *session) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		// An error means that the command has just ended.
		_ = syscall.Kill(-s.process.Pid, sig)
	} else if sig == syscall.SIGKILL {
		s.killed = true
	}
}

func (s *session) resize(rows, columns uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tty != nil {
		// Ignores an error, because a wrong terminal size does no harm.
		_ = setSize(s.tty, rows, columns)
	}
}

// run runs the command of an Open frame to its end and returns the status.
func (s *session) run(open wire.Frame) int {
	request, err := open.Request()
	if err == nil {
		var status int
		if request.Terminal {
			status, err = s.runTerminal(request)
		} else {
			status, err = s.runPipes(request)
		}
		if err == nil {
			return status
		}
	}
	message := fmt.Sprintf("agent: %v\n", err)
	_ = s.out.Send(wire.Frame{Session: s.id, Kind: wire.Stderr, Data: []byte(message)})
	return 127
}

// Path is the search path of the agent and of all commands.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func command(request wire.Request) *exec.Cmd {
	cmd := exec.Command(request.Args[0], request.Args[1:]...)
	cmd.Dir = "/root"
	cmd.Env = []string{"PATH=" + Path, "HOME=/root", "USER=root", "LC_ALL=C.UTF-8", "TERM=" + terminalKind(request)}
	return cmd
}

func terminalKind(request wire.Request) string {
	if request.Terminal {
		return "xterm-256color"
	}
	return "dumb"
}

func (s *session) runPipes(request wire.Request) (int, error) {
	cmd := command(request)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdinR, stdinW, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdinR, outW, errW
	err = s.start(cmd)
	for _, f := range []*os.File{stdinR, outW, errW} {
		f.Close()
	}
	defer outR.Close()
	defer errR.Close()
	defer stdinW.Close() // ends the call of feed, if the command has not read all of its input
	if err != nil {
		return 0, err
	}
	go s.feed(stdinW)
	return s.finish(cmd, map[*os.File]wire.Kind{outR: wire.Stdout, errR: wire.Stderr}), nil
}

// start starts the command, unless the client has already disconnected.
func (s *session) start(cmd *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.killed {
		return fmt.Errorf("the client has disconnected")
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.process = cmd.Process
	return nil
}

// finish forwards output until the command has ended and all its output has been read, and returns
// its status.
func (s *session) finish(cmd *exec.Cmd, outputs map[*os.File]wire.Kind) int {
	var pumps sync.WaitGroup
	var all []*output
	for file, kind := range outputs {
		o := &output{file: file, left: grace}
		all = append(all, o)
		pumps.Add(1)
		go func(kind wire.Kind) {
			defer pumps.Done()
			// An error means the end of the stream: after its last close, a terminal
			// returns EIO.
			_ = wire.Pump(s.out, s.id, kind, o, s.credits, s.done)
		}(kind)
	}
	status := exitStatus(cmd.Wait())
	s.mu.Lock()
	s.process = nil
	s.mu.Unlock()
	for _, o := range all {
		o.commandEnded()
	}
	pumps.Wait()
	close(s.done)
	return status
}

// feed passes input to the command. If the command has closed its input, feed drops the input, and
// still acknowledges it.
func (s *session) feed(to *os.File) {
	defer to.Close()
	for {
		select {
		case f := <-s.input:
			if f.Kind == wire.EOF {
				return
			}
			_, _ = to.Write(f.Data)
			if s.out.Send(wire.Frame{Session: s.id, Kind: wire.Ack}) != nil {
				return
			}
		case <-s.done:
			return
		}
	}
}

// exitStatus returns the exit status as a shell reports it.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	exit, ok := err.(*exec.ExitError)
	if !ok {
		return 127
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}
