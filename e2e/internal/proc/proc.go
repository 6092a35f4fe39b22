// SPDX-License-Identifier: Apache-2.0

// Package proc starts processes that cannot outlive the rig.
package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// starts is the queue of work for the only thread that starts children. The kernel sends a child
// its parent-death signal when the thread that forked it ends. Go may end other threads, but not
// this one.
var starts = make(chan func())

func init() {
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
}

// Start starts cmd in its own process group. cmd gets the signal when the rig ends, even if SIGKILL
// ends the rig.
func Start(cmd *exec.Cmd, signal syscall.Signal) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = signal
	result := make(chan error)
	starts <- func() { result <- cmd.Start() }
	return <-result
}

// InStarter runs do on the thread that starts children. If do changes that thread's namespaces, the
// change applies to all children that start later, and not to the rig.
func InStarter(do func() error) error {
	result := make(chan error)
	starts <- func() { result <- do() }
	return <-result
}

// Adopt makes the rig the parent of its descendants' orphans, so that KillChildren finds them.
func Adopt() error {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
	if errno != 0 {
		return fmt.Errorf("prctl: %w", errno)
	}
	return nil
}

// KillChildren kills all children of the rig. Their children then become children of the rig, so it
// kills these as well.
func KillChildren() {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		children := children()
		if len(children) == 0 {
			return
		}
		for _, pid := range children {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			var status syscall.WaitStatus
			_, _ = syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func children() []int {
	var list []int
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, path := range stats {
		if pid, parent := parse(path); parent == os.Getpid() {
			list = append(list, pid)
		}
	}
	return list
}

// parse reads a line "pid (name) state parent ...". The name may contain any characters.
func parse(path string) (pid, parent int) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, 0
	}
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, 0
	}
	pid, _ = strconv.Atoi(strings.Fields(text)[0])
	parent, _ = strconv.Atoi(fields[1])
	return pid, parent
}
