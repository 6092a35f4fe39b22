// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

const retry = 50 * time.Millisecond

// hold locks a file. The driver's tools inherit the descriptor. So after the driver's death, the
// lock is released only when the last tool has ended. The next owner therefore never runs at the
// same time as an old tool.
func hold(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	said := false
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !said {
			klog.FromContext(ctx).Info("Another process has the folder open; waiting until that process ends", "lock", path)
			said = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("another process holds %s: %w", path, ctx.Err())
		case <-time.After(retry):
		}
	}
}
