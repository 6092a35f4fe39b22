// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A machine's mount point cannot be written to as long as no volume is mounted there, and the volume can.
func TestGuestMountPoint(t *testing.T) {
	needsRoot(t)
	block, err := filepath.Glob("/sys/class/block/*/ro")
	if err != nil {
		t.Fatal(err)
	}
	device := ""
	for _, ro := range block {
		name := filepath.Base(filepath.Dir(ro))
		if st, err := os.Stat("/dev/" + name); err == nil && st.Mode()&os.ModeDevice != 0 {
			device = name
			break
		}
	}
	if device == "" {
		t.Skip("there is no block device")
	}
	script, err := filepath.Abs("../../kubevirt-manifests/guest/stargate-mount")
	if err != nil {
		t.Fatal(err)
	}
	stubs := t.TempDir()
	for name, text := range map[string]string{
		"stargatectl": "echo data",
		"mount":       `echo "$4" >"$0.options"; exec "$MOUNT" -t tmpfs volume "$6"`, // in the place of a volume
	} {
		if err := os.WriteFile(filepath.Join(stubs, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	mount, err := exec.LookPath("mount")
	if err != nil {
		t.Fatal(err)
	}
	disk := t.TempDir()
	cmd := exec.Command("unshare", "--mount", "sh", "-euc", `
		umask 022
		"$MOUNT" --bind "$DISK" /mnt
		PATH=$STUBS:$PATH sh "$SCRIPT" "$DEVICE"
		echo word >/mnt/stargate/data/word
		umount /mnt/stargate/data
		if echo lost >/mnt/stargate/data/lost; then echo WRITTEN; fi
		PATH=$STUBS:$PATH sh "$SCRIPT" "$DEVICE"
		umount /mnt/stargate/data
		! command -v chattr >/dev/null || chattr -i /mnt/stargate/data || true`)
	cmd.Env = append(os.Environ(), "MOUNT="+mount, "DISK="+disk, "STUBS="+stubs, "SCRIPT="+script, "DEVICE="+device)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if strings.Contains(string(out), "WRITTEN") {
		probe := filepath.Join(disk, "probe")
		if os.Mkdir(probe, 0o755) == nil && exec.Command("chattr", "+i", probe).Run() != nil {
			t.Skip("this file system has no immutable directories")
		}
		_ = exec.Command("chattr", "-i", probe).Run()
		t.Errorf("what belongs into the volume was stored on the disk: %s", out)
	}
	options, err := os.ReadFile(filepath.Join(stubs, "mount.options"))
	if err != nil || !strings.Contains(string(options), "nosuid,nodev") {
		t.Errorf("mounted with %s, %v", options, err)
	}
}
