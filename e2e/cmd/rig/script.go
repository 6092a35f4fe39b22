// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"stargate/e2e/internal/lab"
	"stargate/e2e/internal/proc"
	"stargate/e2e/internal/vm"
)

// functions are the functions that scripts can call. bash reads them before the script.
const functions = `on() { "$RIG_PROGRAM" __client run "$@"; }
kill_guest() { "$RIG_PROGRAM" __client kill_guest "$@"; }
start_guest() { "$RIG_PROGRAM" __client start_guest "$@"; }
stop_guest() { "$RIG_PROGRAM" __client stop_guest "$@"; }
pause_guest() { "$RIG_PROGRAM" __client pause_guest "$@"; }
resume_guest() { "$RIG_PROGRAM" __client resume_guest "$@"; }
unguard_guest() { "$RIG_PROGRAM" __client unguard_guest "$@"; }
machine_check() { "$RIG_PROGRAM" __client machine_check "$@"; }
await_panic() { "$RIG_PROGRAM" __client await_panic "$@"; }
kill_node() { "$RIG_PROGRAM" __client kill_node host "$@"; }
start_node() { "$RIG_PROGRAM" __client start_node host "$@"; }
await_reboot() { "$RIG_PROGRAM" __client await_reboot host "$@"; }
expect_damage() { "$RIG_PROGRAM" __client expect_damage volume "$@"; }
console() { "$RIG_PROGRAM" __client console "$@"; }
`

// script runs the user's script until it ends.
func (s *session) script() (int, error) {
	path, args, err := s.scriptFile()
	if err != nil {
		return 0, err
	}
	// The script has its own process group. The kernel would stop the script if it read from
	// the terminal.
	var stdin *os.File
	if !isTerminal(os.Stdin) && !(len(s.options.script) > 0 && s.text == "" && s.options.script[0] == "-") {
		stdin = os.Stdin
	}
	cmd, err := s.start(append([]string{path}, args...), stdin, os.Stdout, os.Stderr)
	if err != nil {
		return 0, err
	}
	return waitStatus(cmd)
}

// start starts a script with its arguments.
func (s *session) start(words []string, stdin, stdout, stderr *os.File) (*exec.Cmd, error) {
	prelude := filepath.Join(s.dir, "functions.sh")
	if err := os.WriteFile(prelude, []byte(functions), 0o644); err != nil {
		return nil, err
	}
	cmd, err := keeper(append([]string{"bash"}, words...)...)
	if err != nil {
		return nil, err
	}
	if cmd.Env, err = s.environment(prelude); err != nil {
		return nil, err
	}
	if stdin != nil {
		cmd.Stdin = stdin
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.aborted != 0 {
		return nil, status(s.aborted)
	}
	if err := proc.Start(cmd, syscall.SIGTERM); err != nil {
		return nil, err
	}
	s.main = cmd
	return cmd, nil
}

// environment returns the user's environment, with variables that describe the run.
func (s *session) environment(prelude string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return append(os.Environ(),
		"BASH_ENV="+prelude,
		"RIG_PROGRAM="+self,
		"RIG_DIR="+s.dir,
		"RIG_GUESTS="+strings.Join(s.lab.Guests(), " "),
		"RIG_SYSTEMS="+strings.Join(s.lab.Systems(), " "),
		"RIG_KERNEL="+s.kernels[0].Release,
		"RIG_ACCEL="+s.lab.Accel.Name,
		"RIG_MOUNT="+lab.MountPoint,
		"RIG_RANGE="+s.shared.Path(),
		"RIG_BASE="+fmt.Sprintf("%#x", vm.Base),
		"RIG_SHARES="+s.sharesDir(),
		"RIG_SIZE="+fmt.Sprint(int64(s.size)),
	), nil
}

// waitStatus waits for a process and returns its status as a shell does.
func waitStatus(cmd *exec.Cmd) (int, error) {
	err := cmd.Wait()
	if exit, ok := err.(*exec.ExitError); ok {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}
