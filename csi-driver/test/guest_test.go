// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Members can write labels. If two devices have the same label, a VM mounts neither of them,
// whatever their order.
func TestGuestLabels(t *testing.T) {
	needsRoot(t)
	script, err := filepath.Abs("../../kubevirt-manifests/guest/stargate-mount")
	if err != nil {
		t.Fatal(err)
	}
	mount, err := exec.LookPath("mount")
	if err != nil {
		t.Fatal(err)
	}
	stubs := t.TempDir()
	for name, text := range map[string]string{
		"stargatectl": `exec cat "$STUBS/${2#/dev/}.label"`,
		"mount":       `exec "$MOUNT" -t tmpfs "$5" "$6"`, // a stand-in for a volume
	} {
		if err := os.WriteFile(filepath.Join(stubs, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("unshare", "--mount", "sh", "-euc", `
		"$MOUNT" -t tmpfs disk /mnt
		"$MOUNT" -t tmpfs dev /dev
		mknod -m 666 /dev/null c 1 3
		mknod /dev/pmem0 b 259 990 && mknod /dev/pmem1 b 259 991 && mknod /dev/pmem2 b 259 992 || exit 77
		PATH=$STUBS:$PATH
		# (the kernel knows no such devices, and so not whether they can be written)
		run() { { sh "$SCRIPT" "$1" 2>&1 || echo "$1: refused"; } | grep -v ^cat: || true; }
		echo output >"$STUBS/pmem0.label"
		echo output >"$STUBS/pmem1.label"
		run pmem0
		run pmem1
		echo input >"$STUBS/pmem1.label"
		run pmem1
		run pmem0
		echo input >"$STUBS/pmem0.label"
		run pmem0
		run pmem1
		echo "mounted: $(findmnt -rno SOURCE,TARGET | grep /mnt/stargate | tr '\n' ' ')"`)
	cmd.Env = append(os.Environ(), "MOUNT="+mount, "STUBS="+stubs, "SCRIPT="+script)
	out, err := cmd.CombinedOutput()
	if status, ok := err.(*exec.ExitError); ok && status.ExitCode() == 77 {
		t.Skipf("no device can be made here: %s", out)
	}
	const want = `stargate-mount: /dev/pmem0: /dev/pmem1 has the label 'output', too: neither is mounted. Set another label on one of them (stargatectl label)
pmem0: refused
stargate-mount: /dev/pmem1: /dev/pmem0 has the label 'output', too: neither is mounted. Set another label on one of them (stargatectl label)
pmem1: refused
stargate-mount: /dev/pmem1 is mounted at /mnt/stargate/input
stargate-mount: /dev/pmem0 is mounted at /mnt/stargate/output
stargate-mount: /dev/pmem0: /dev/pmem1 has the label 'input', too: neither is mounted. Set another label on one of them (stargatectl label)
pmem0: refused
mounted: /dev/pmem1 /mnt/stargate/input /dev/pmem0 /mnt/stargate/output
`
	if err != nil || strings.TrimSpace(string(out)) != strings.TrimSpace(want) {
		t.Errorf("%v: %s", err, out)
	}
}

// A user in a VM cannot write to the mount point without a mounted volume, but can write to the
// volume.
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
		"mount":       `echo "$4" >"$0.options"; exec "$MOUNT" -t tmpfs volume "$6"`, // a stand-in for a volume
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
		t.Errorf("a file for the volume was stored on the disk: %s", out)
	}
	options, err := os.ReadFile(filepath.Join(stubs, "mount.options"))
	if err != nil || !strings.Contains(string(options), "nosuid,nodev") {
		t.Errorf("mounted with %s, %v", options, err)
	}
}
