// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// Chroot runs programs in another root: that of the node.
type Chroot struct{ Dir string }

var _ Runner = Chroot{}

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// What is left of a program that was ended, and has its output open, is waited for so long.
const grace = 5 * time.Second

// Run has the program found there, not here. In time it ends with all that it has started: DKMS's compiler.
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
