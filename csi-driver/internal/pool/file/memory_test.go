// SPDX-License-Identifier: Apache-2.0

package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/folder"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// memory returns a folder in which a zone may be.
func memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "filezone")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// disk returns a folder in which a zone may not be.
func disk(t *testing.T) string {
	t.Helper()
	here, err := os.MkdirTemp(".", "disk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(here) })
	for _, dir := range []string{t.TempDir(), here} {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		if !folder.Volatile(st.Type) {
			return dir
		}
	}
	t.Skip("all file systems here are in memory")
	return ""
}

// VMs have the files of a zone as memory. So Open refuses a folder on a disk, and does not change
// its content.
func TestOnADisk(t *testing.T) {
	config := Config{Dir: filepath.Join(disk(t), "zone"), Base: 64 << 30, Size: pool.Gigabyte}
	half := filepath.Join(config.Dir, folder.Making+"v")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if z, err := Open(background, config, &stargatectl.Tools{}); err == nil {
		z.Close()
		t.Error("a zone on a disk is opened")
	} else if !strings.Contains(err.Error(), "not in memory") || !strings.Contains(err.Error(), config.Dir) {
		t.Errorf("the error of a zone on a disk is: %v", err)
	}
	if _, err := os.Stat(half); err != nil {
		t.Error(err)
	}
	config.Dir = filepath.Join(memory(t), "zone")
	z, err := Open(background, config, &stargatectl.Tools{})
	if err != nil {
		t.Fatal(err)
	}
	z.Close()
}

// If another file system is mounted at the folder later, it is not the zone. The driver then
// neither finds nor creates volumes there, and does not regard a volume as deleted.
func TestAnotherFolder(t *testing.T) {
	config := Config{Dir: filepath.Join(memory(t), "zone"), Base: 64 << 30, Size: pool.Gigabyte}
	z, err := Open(background, config, scripted(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.Close() })
	if err := os.Rename(config.Dir, config.Dir+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := z.Status(background); !errkind.Is(err, errkind.NoZone) {
		t.Errorf("without a folder: %v", err)
	}
	if err := os.Mkdir(config.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, status := z.Status(background)
	_, create := z.Create(background, small)
	for what, err := range map[string]error{"status": status, "create": create, "delete": z.Delete(background, "v"), "sweep": z.Sweep(background)} {
		if err == nil || !strings.Contains(err.Error(), "no longer the same folder") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := os.Remove(config.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(config.Dir+".away", config.Dir); err != nil {
		t.Fatal(err)
	}
	if _, err := z.Status(background); err != nil {
		t.Errorf("given back: %v", err)
	}
}
