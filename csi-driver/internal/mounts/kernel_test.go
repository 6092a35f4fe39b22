// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A file system counts as missing only if the kernel reports that it is unknown.
func TestKnown(t *testing.T) {
	const list = "nodev\tproc\n\text4\nnodev\tstargatefs\n"
	for _, c := range []struct {
		fstype string
		opened error
		known  bool
	}{
		{"stargatefs", unix.ENODEV, true},
		{"ext4", unix.ENODEV, true},
		{"stargate", unix.ENODEV, false},
		{"nodev", unix.ENODEV, false},
		{"loaded", nil, true},
		{"refused", unix.EPERM, true},
		{"old", unix.ENOSYS, true},
	} {
		opened := func(string, int) (int, error) {
			if c.opened != nil {
				return -1, c.opened
			}
			return unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		if got := known(list, c.fstype, opened); got != c.known {
			t.Errorf("%s, %v: %v", c.fstype, c.opened, got)
		}
	}
	if !Known("proc") {
		t.Error("this kernel has no proc")
	}
}

// served converts options of mount(8) to those of mount(2). It leaves out other options, and a
// context on a node without SELinux.
func TestServedOptions(t *testing.T) {
	options := []string{"ro", "noatime", "nosuid", "nodev", "map=walk", "errors=continue", "relatime", "context=u:r:t:s0"}
	flags, data := served(options, true)
	if flags != unix.MS_RDONLY|unix.MS_NOATIME|unix.MS_NOSUID|unix.MS_NODEV || data != `,context="u:r:t:s0"` {
		t.Errorf("%#x %s", flags, data)
	}
	if _, data = served(options, false); data != "" {
		t.Errorf("without SELinux: %s", data)
	}
}
