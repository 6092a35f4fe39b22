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

// ask runs stargatectl for a change to which all systems of a volume have to answer. A killed VM
// does not answer, and would block the change, and so its own next start. If no process has the
// file open for writing, no system can use the volume. Then the silent systems are fenced, and the
// change is tried again.
func (z *Zone) ask(ctx context.Context, v pool.Volume, args ...string) error {
	_, err := z.tools.Run(ctx, stargatectl.Ctl, args...)
	if err == nil || pool.KindOf(err) != errkind.Busy {
		return err
	}
	systems, serr := z.Systems(ctx, v)
	if serr != nil || written(v.Path) {
		return err
	}
	// Systems in this list came before that look; a later one has another incarnation.
	for _, s := range systems {
		if s.Lives() || !s.Silent() {
			continue
		}
		if ferr := z.tools.Fence(ctx, v.Path, s); ferr != nil {
			return err
		}
		klog.FromContext(ctx).Info("No process has the volume's file open: its system is fenced", "volume", v.Name, "system", s.Name)
	}
	_, err = z.tools.Run(ctx, stargatectl.Ctl, args...)
	return err
}

// written reports whether a process of this kernel may store in a file, by a descriptor or a
// mapping. The kernel gives a lease of the file only if none may (fcntl(2)). After an error the
// answer is yes.
func written(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close() // this ends the lease
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	return err != nil
}
