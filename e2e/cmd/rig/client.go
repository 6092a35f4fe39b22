// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"stargate/e2e/internal/say"
	"stargate/e2e/internal/wire"
)

// clientCommand is the hidden sub-command that implements a script's functions.
const clientCommand = "__client"

// statusGone is the status of `on` if the guest does not run. ssh returns the same status.
const statusGone = 255

func socketPath(dir string) string { return filepath.Join(dir, "socket") }

// client executes one call of a script's function.
func client(args []string) int {
	code, err := clientCall(args)
	if err != nil {
		say.Line("%v", err)
		return statusGone
	}
	return code
}

func clientCall(args []string) (int, error) {
	if len(args) < 2 {
		return 0, errors.New("usage: on GUEST COMMAND...; kill_guest, start_guest, stop_guest, pause_guest, resume_guest, unguard_guest, machine_check, await_panic, console GUEST; kill_node, start_node, await_reboot; expect_damage")
	}
	verb, guest, rest := args[0], args[1], args[2:]
	dir := os.Getenv("RIG_DIR")
	if verb != "run" {
		return ask(dir, wire.Request{Verb: verb, Guest: guest, Args: rest}, nil)
	}
	if len(rest) == 0 {
		return 0, errors.New("on: COMMAND is missing")
	}
	return ask(dir, wire.Request{Guest: guest, Args: shellCommand(rest)}, os.Stdin)
}

// shellCommand joins words to one command for a shell, as ssh does.
func shellCommand(words []string) []string {
	return []string{"bash", "-c", strings.Join(words, " ")}
}

// ask sends a request to the rig whose folder is dir, and passes the request's streams through.
func ask(dir string, request wire.Request, stdin io.Reader) (int, error) {
	conn, err := net.Dial("unix", socketPath(dir))
	if err != nil {
		return 0, fmt.Errorf("the rig does not answer: %w", err)
	}
	defer conn.Close()
	out := wire.NewWriter(conn)
	first, err := wire.OpenFrame(0, request)
	if err != nil {
		return 0, err
	}
	if err := out.Send(first); err != nil {
		return 0, err
	}
	if request.Terminal {
		defer followSize(out)()
	}
	return wire.Converse(out, 0, wire.Frames(conn), stdin, os.Stdout, os.Stderr)
}

// followSize sends each new size of the terminal to the guest.
func followSize(out *wire.Writer) (stop func()) {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	go func() {
		for range changes {
			rows, columns := terminalSize(os.Stdin)
			if out.Send(wire.Frame{Kind: wire.Resize, Data: wire.Numbers(rows, columns)}) != nil {
				return
			}
		}
	}()
	return func() { signal.Stop(changes); close(changes) }
}

// attach opens a shell in a guest of a current run.
func attach(_ rig, args []string) error {
	flags := flag.NewFlagSet("attach", flag.ContinueOnError)
	if err := parse(flags, "FOLDER GUEST [COMMAND]... (the run's folder is in its messages and in $RIG_DIR)", 2, -1, args); err != nil {
		return err
	}
	if err := checkFolder("attach: no run is in progress in that folder", flags.Arg(0), filepath.Base(socketPath(""))); err != nil {
		return err
	}
	code, err := enter(flags.Arg(0), flags.Arg(1), flags.Args()[2:])
	if err == nil && code != 0 {
		err = status(code)
	}
	return err
}

// shell starts guests and opens a shell in the first one.
func shell(r rig, args []string) error {
	o, err := parseOptions(r, "shell", "[COMMAND]...", args)
	if err != nil {
		return err
	}
	return r.withLab(o, func(s *session) (int, error) {
		say.Line("from elsewhere: e2e/rig attach %s %s", s.dir, strings.Join(s.lab.Systems(), "|"))
		return enter(s.dir, s.lab.Systems()[0], o.script)
	})
}

// enter runs a command, or an interactive shell, with the user's terminal.
func enter(dir, guest string, words []string) (int, error) {
	request := wire.Request{Guest: guest, Args: []string{"bash", "-l"}}
	if len(words) > 0 {
		request.Args = shellCommand(words)
	}
	if isTerminal(os.Stdin) && isTerminal(os.Stdout) {
		request.Terminal = true
		request.Rows, request.Columns = terminalSize(os.Stdin)
		restore, err := rawTerminal(os.Stdin)
		if err != nil {
			return 0, err
		}
		defer restore()
	}
	return ask(dir, request, os.Stdin)
}
