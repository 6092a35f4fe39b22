// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"context"
	"os/exec"
	"syscall"
)

// Chroot runs programs in another root: that of the node.
type Chroot struct{ Dir string }

var _ Runner = Chroot{}

const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Run has the program found there, not here.
func (c Chroot) Run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "/usr/bin/env", append([]string{"--", program}, args...)...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + path, "LC_ALL=C"}
	if c.Dir != "/" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.Dir}
	}
	said, err := cmd.CombinedOutput()
	return string(said), err
}
