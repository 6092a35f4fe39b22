// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// Chroot runs programs in the node's root directory.
type Chroot struct{ Dir string }

var _ Runner = Chroot{}

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// The time limit of the wait for children of an ended program that keep its output open.
const grace = 5 * time.Second

// Run finds the program in that root and runs it. When ctx ends, Run ends the program with all its
// children, such as DKMS's compiler.
func (c Chroot) Run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "/usr/bin/env", append([]string{"--", program}, args...)...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + path, "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.Dir != "/" {
		cmd.SysProcAttr.Chroot = c.Dir
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = grace
	said, err := cmd.CombinedOutput()
	return string(said), err
}
