// SPDX-License-Identifier: Apache-2.0

// Package stargatectl runs stargatectl and mkfs.stargatefs, and reads their JSON. The driver uses
// volumes and LVM only through these programs, so there is one engine (D4) and one set of rules.
package stargatectl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

// Names of the programs.
const (
	Ctl  = "stargatectl"
	Mkfs = "mkfs.stargatefs"
)

// grace is the time in which a program must end after a signal, including the read of its last
// output. On a busy machine, this has taken more than 5 seconds.
const grace = time.Minute

// The number of programs that run at the same time. LVM handles one program at a time in a zone.
// Hundreds of programs that waited for it have used all of a node's memory. Programs that only read
// end soon, and do not wait for programs that wipe or copy for minutes. Otherwise their callers
// would regard the zone as lost. Reads during a change may take as long as the change, so they have
// a separate limit.
const (
	atOnce      = 16
	looksAtOnce = 8
)

// The time limit of a read of one volume, or less if the caller has less time (see share). Members
// of a volume can write the bytes that the program reads. A read that does not end must not block
// the other volumes.
const (
	lookLimit = 30 * time.Second
	// A check of heartbeats takes up to two seconds.
	leastShare = 4 * time.Second
)

type changing struct{}

// Changing marks the context of a call that changes something. Reads during such a call have a
// separate limit.
func Changing(ctx context.Context) context.Context { return context.WithValue(ctx, changing{}, true) }

// Changes reports whether the context has this mark.
func Changes(ctx context.Context) bool { return ctx.Value(changing{}) != nil }

// Tools runs the programs in a folder.
type Tools struct {
	dir string
	// Each channel has one element for each running program.
	running, looking, lookingToChange chan struct{}
	// Each running program has this file open. So a lock on the file is held until the last
	// program has ended, even after the driver was killed.
	held []*os.File
	// The time limit of a read of one volume.
	limit time.Duration
}

// New returns Tools for the programs in dir, or in PATH if dir is empty.
func New(dir string) (*Tools, error) {
	if dir == "" {
		found, err := exec.LookPath(Ctl)
		if err != nil {
			return nil, fmt.Errorf("%s is not in PATH: %w", Ctl, err)
		}
		dir = filepath.Dir(found)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("folder of the tools: %w", err)
	}
	for _, name := range []string{Ctl, Mkfs} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("tool %s: %w", name, err)
		}
	}
	return &Tools{
		dir: dir, running: make(chan struct{}, atOnce), looking: make(chan struct{}, looksAtOnce), lookingToChange: make(chan struct{}, looksAtOnce),
		limit: lookLimit,
	}, nil
}

// Holding returns a copy of t whose programs keep the file open.
func (t *Tools) Holding(f *os.File) *Tools {
	more := *t
	more.held = append(append([]*os.File{}, t.held...), f)
	return &more
}

// Within returns a copy of t with another time limit for a read of one volume.
func (t *Tools) Within(limit time.Duration) *Tools {
	more := *t
	more.limit = limit
	return &more
}

// Reason is the reason why stargatectl has not changed a zone or a volume. stargatectl(8) lists the
// reasons under EXIT STATUS.
type Reason string

const (
	Failed      Reason = "failed"
	BadArgument Reason = "bad-argument"
	NotFound    Reason = "not-found"
	Exists      Reason = "exists"
	NoRoom      Reason = "no-room"
	InUse       Reason = "in-use"
	Busy        Reason = "busy"
	NoZone      Reason = "no-zone"
	Unusable    Reason = "unusable"
)

// Refused is the error of a program that has refused a command, with the program's message.
type Refused struct {
	Program string
	Status  int
	Said    string
	Reason  Reason // Failed if the program has printed no reason
}

const statusUsage = 2

// refused returns the error for a program that has exited with a status.
func refused(program string, status int, out, said []byte) *Refused {
	var told struct {
		Reason Reason `json:"reason"`
	}
	if json.Unmarshal(out, &told) != nil || told.Reason == "" {
		told.Reason = Failed
		if status == statusUsage {
			told.Reason = BadArgument
		}
	}
	return &Refused{Program: program, Status: status, Said: sentence(program, string(said)), Reason: told.Reason}
}

// ReasonOf returns the reason of a refusal, and Failed for all other errors.
func ReasonOf(err error) Reason {
	var r *Refused
	if errors.As(err, &r) {
		return r.Reason
	}
	return Failed
}

func (r *Refused) Error() string { return r.Said }

// Run runs a program that changes something, and returns its output.
func (t *Tools) Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	return t.run(ctx, t.running, 0, program, args...)
}

// Seal makes files of a mounted volume final. dir is the volume's mount, and names are relative to
// it.
func (t *Tools) Seal(ctx context.Context, dir string, names []string) error {
	args := []string{"seal", dir}
	for _, name := range names {
		args = append(args, "/"+name) // a name may begin with a dash
	}
	_, err := t.Run(ctx, Ctl, args...)
	return err
}

// mostWords is the largest number of a command's words in a message. A read of many volumes has
// many paths.
const mostWords = 24

// command returns the command line of a program, for messages.
func command(program string, args []string) string {
	more := ""
	if len(args) > mostWords {
		more = fmt.Sprintf(" and %d more", len(args)-mostWords)
		args = args[:mostWords]
	}
	return program + " " + strings.Join(args, " ") + more
}

// share returns the time limit of a read: half of the time that its caller has left. So if the read
// does not end, the caller gets an error in time and can continue with other volumes. If too little
// time is left, the call ends before the read, because then the volume is not the cause.
func share(ctx context.Context, limit time.Duration) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Until(end)/2, leastShare))
	}
	return limit
}

// run waits until another program may run, and runs the program. If there is a limit, run kills the
// program after its share of the limit. Such a program changes nothing, so it need not clean up.
func (t *Tools) run(ctx context.Context, room chan struct{}, limit time.Duration, program string, args ...string) ([]byte, error) {
	out, said := printed{most: mostOut}, printed{most: mostSaid}
	within, done := context.WithCancel(ctx)
	defer done()
	cmd := exec.CommandContext(within, filepath.Join(t.dir, program), args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.ExtraFiles = t.held
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	select {
	case room <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: has not begun (%d others run): %w", command(program, args), len(room), ctx.Err())
	}
	var late atomic.Bool
	if limit > 0 {
		limit = share(ctx, limit)
		cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Kill() }, time.Second
		defer time.AfterFunc(limit, func() { late.Store(true); done() }).Stop()
	}
	start := time.Now()
	err := cmd.Run()
	<-room
	klog.FromContext(ctx).V(4).Info("Ran a tool", "tool", program, "arguments", args, "took", time.Since(start), "error", err)
	if err == nil {
		text, err := out.whole()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", command(program, args), err)
		}
		return text, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: has not ended: %w", command(program, args), ctx.Err())
	}
	if late.Load() {
		return nil, fmt.Errorf("%s: has not ended within %s", command(program, args), limit.Round(time.Millisecond))
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() < 0 {
		return nil, fmt.Errorf("%s: %w", command(program, args), err)
	}
	return nil, refused(program, exit.ExitCode(), out.text, said.text)
}

// sentence returns the message of a program in one line, without the program's name.
func sentence(program, said string) string {
	var lines []string
	for _, line := range strings.Split(said, "\n") {
		line = strings.TrimSpace(line)
		line = strings.TrimPrefix(line, program+": ")
		if line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return program + " failed, and printed no reason"
	}
	return shorten(strings.Join(lines, "; "))
}

// JSON runs stargatectl and decodes its output.
func (t *Tools) JSON(ctx context.Context, into any, args ...string) error {
	return t.json(ctx, into, 0, args...)
}

func (t *Tools) json(ctx context.Context, into any, limit time.Duration, args ...string) error {
	room := t.looking
	if Changes(ctx) {
		room = t.lookingToChange
	}
	out, err := t.run(ctx, room, limit, Ctl, append([]string{"-j"}, args...)...)
	if err != nil {
		return err
	}
	if err := decode(out, into); err != nil {
		return fmt.Errorf("%s: %w", command(Ctl, args), err)
	}
	return nil
}
