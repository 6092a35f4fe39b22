// SPDX-License-Identifier: Apache-2.0

// Package stargatectl calls stargatectl and mkfs.stargatefs, and reads their JSON. The driver
// touches volumes and LVM only through it: one engine (D4), one set of rules.
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

// grace is the time for a program to end after a signal, and for the read of its last output. On a
// busy machine this has taken more than 5 seconds.
const grace = time.Minute

// How many programs run at once. LVM works on one at a time in a zone: hundreds that wait for it
// have used all of a node's memory. Programs that only look, and end at once, do not wait for those
// that wipe or copy for minutes. A caller that waits for a look would regard the zone as lost. The
// looks of a change may take as long as the change, so they have places of their own.
const (
	atOnce      = 16
	looksAtOnce = 8
)

// How long a look at one volume may take; less if its caller has less time (share). Members of a
// volume write the bytes that a look examines, so a look that does not end must not block the other
// volumes.
const (
	lookLimit = 30 * time.Second
	// A healthy look at heartbeats takes up to two seconds.
	leastShare = 4 * time.Second
)

type changing struct{}

// Changing marks the context of a call that changes something. Looks of such a call have places of
// their own.
func Changing(ctx context.Context) context.Context { return context.WithValue(ctx, changing{}, true) }

// Changes reports whether the context has this mark.
func Changes(ctx context.Context) bool { return ctx.Value(changing{}) != nil }

// Tools are the programs in a folder.
type Tools struct {
	dir string
	// One element for each running program.
	running, looking, lookingToChange chan struct{}
	// Open as long as any program runs: a lock on it is held until the last one has ended, also
	// after the driver was killed.
	held []*os.File
	// The limit of a look at one volume.
	limit time.Duration
}

// New finds the programs: in dir, or if that is empty in PATH.
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

// Holding is a copy of t whose programs keep the file open.
func (t *Tools) Holding(f *os.File) *Tools {
	more := *t
	more.held = append(append([]*os.File{}, t.held...), f)
	return &more
}

// Within is a copy of t with another limit for a look at one volume.
func (t *Tools) Within(limit time.Duration) *Tools {
	more := *t
	more.limit = limit
	return &more
}

// Reason is the reason why stargatectl has not changed a zone or a volume, in its own words
// (stargatectl(8), EXIT STATUS).
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

// Refused is the refusal of a program, with its own message.
type Refused struct {
	Program string
	Status  int
	Said    string
	Reason  Reason // Failed if the program has given no reason
}

const statusUsage = 2

// refused is the error of a program that has ended with a status.
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

// ReasonOf is the reason of a refusal; Failed for all other errors.
func ReasonOf(err error) Reason {
	var r *Refused
	if errors.As(err, &r) {
		return r.Reason
	}
	return Failed
}

func (r *Refused) Error() string { return r.Said }

// Run calls a program that changes something, and returns what it has printed.
func (t *Tools) Run(ctx context.Context, program string, args ...string) ([]byte, error) {
	return t.run(ctx, t.running, 0, program, args...)
}

// mostWords of a command are shown, because a look at many volumes has many paths.
const mostWords = 24

// command is the command line of a program, for messages.
func command(program string, args []string) string {
	more := ""
	if len(args) > mostWords {
		more = fmt.Sprintf(" and %d more", len(args)-mostWords)
		args = args[:mostWords]
	}
	return program + " " + strings.Join(args, " ") + more
}

// share is the time limit of a look: half of the time that its caller has left. So the caller
// learns that a look did not end, and can continue with other volumes. With too little time left,
// the call ends before the look, because the volume is not the cause.
func share(ctx context.Context, limit time.Duration) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Until(end)/2, leastShare))
	}
	return limit
}

// run waits until there is room for one more. With a limit the program is killed after its share of
// that: it changes nothing, so it has nothing to clean up.
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

// sentence is the output of a program, in one line and without its name.
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

// JSON runs stargatectl, and decodes its output.
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
