// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"stargate/e2e/internal/proc"
	"stargate/e2e/internal/say"
)

// keeperCommand is the hidden sub-command between the rig and a script. It ends all processes that
// the script has started. It does so even after a SIGKILL of the rig, because the kernel sends the
// keeper a signal when the rig ends.
const keeperCommand = "__keep"

// keeper returns a command that runs a program under a keeper.
func keeper(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	return exec.Command(self, append([]string{keeperCommand}, args...)...), err
}

// keep runs a program, and then ends all processes that the program has left.
func keep(args []string) int {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := proc.Adopt(); err != nil {
		return kept(err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return kept(err)
	}
	ended := make(chan int, 1)
	go func() {
		code, err := waitStatus(cmd)
		if err != nil {
			code = kept(err)
		}
		ended <- code
	}()
	code := 128 + int(syscall.SIGTERM)
	select {
	case code = <-ended:
	case <-signals:
		_ = cmd.Process.Signal(syscall.SIGTERM) // the process may have ended just now
		select {
		case code = <-ended:
		case <-time.After(time.Second): // gives the script time for its traps
		}
	}
	proc.KillChildren()
	return code
}

func kept(err error) int {
	say.Line("%v", fmt.Errorf("the script: %w", err))
	return statusRig
}
