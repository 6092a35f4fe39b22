// SPDX-License-Identifier: Apache-2.0

// Package chroot runs a command inside a Debian root, in new mount and process namespaces. The
// command's mounts are not visible outside. All mounts and processes end with the command, even if
// a signal kills it.
package chroot

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Command describes a program and the root to run it in.
type Command struct {
	Root  string
	Binds map[string]string // existing folder inside the root -> folder outside
	Dir   string
	Args  []string
	Env   []string
}

// hidden is an internal sub-command of the rig, which enters the namespaces and then executes the
// command. It needs a new process, because the threads of a Go program share their namespaces.
const hidden = "__chroot"

// Run runs the command, and sends its output to out.
func (c Command) Run(out io.Writer) error {
	plan, err := json.Marshal(c)
	if err != nil {
		return err
	}
	cmd := exec.Command("/proc/self/exe", hidden, string(plan))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s in %s: %w", c.Args[0], c.Root, err)
	}
	return nil
}

// Enter handles the hidden sub-command, and does not return then. For other arguments it returns at
// once.
func Enter(args []string) {
	if len(args) != 2 || args[0] != hidden {
		return
	}
	err := enter(args[1])
	fmt.Fprintf(os.Stderr, "rig: chroot: %v\n", err)
	os.Exit(127)
}

func enter(plan string) error {
	var c Command
	if err := json.Unmarshal([]byte(plan), &c); err != nil {
		return err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	for inside, outside := range c.Binds {
		target := filepath.Join(c.Root, inside)
		if err := syscall.Mount(outside, target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind mount of %s on %s: %w", outside, target, err)
		}
	}
	for _, device := range []string{"null", "zero", "urandom", "tty"} {
		target := filepath.Join(c.Root, "dev", device)
		if err := syscall.Mount("/dev/"+device, target, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind mount of /dev/%s: %w", device, err)
		}
	}
	if err := syscall.Mount("proc", filepath.Join(c.Root, "proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("mount of proc: %w", err)
	}
	if err := syscall.Chroot(c.Root); err != nil {
		return fmt.Errorf("chroot %s: %w", c.Root, err)
	}
	if err := os.Chdir(c.Dir); err != nil {
		return err
	}
	program, err := exec.LookPath(c.Args[0])
	if err != nil {
		return err
	}
	return syscall.Exec(program, c.Args, c.Env)
}
