// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// ask runs stargatectl for a change that all systems of a volume must acknowledge. A killed VM does
// not acknowledge. It would block the change, and so its own next start. If no process has the file
// open for writing, no system can use the volume. In this case, ask fences the silent systems and
// retries the change.
func (z *Zone) ask(ctx context.Context, v pool.Volume, args ...string) error {
	_, err := z.tools.Run(ctx, stargatectl.Ctl, args...)
	if err == nil || pool.KindOf(err) != errkind.Busy {
		return err
	}
	systems, serr := z.Systems(ctx, v)
	if serr != nil || written(v.Path) {
		return err
	}
	// The systems in this list joined before the check of the file. A system that joins later
	// has another incarnation.
	for _, s := range systems {
		if s.Lives() || !s.Silent() {
			continue
		}
		if ferr := z.tools.Fence(ctx, v.Path, s); ferr != nil {
			return err
		}
		klog.FromContext(ctx).Info("Fenced a silent system, because no process has the volume's file open", "volume", v.Name, "system", s.Name)
	}
	_, err = z.tools.Run(ctx, stargatectl.Ctl, args...)
	return err
}

// written reports whether a process of this kernel can store in a file, by a descriptor or a
// mapping. The kernel grants a lease of the file only if no process can (fcntl(2)). After an error,
// written returns true.
func written(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close() // releases the lease
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	return err != nil
}
