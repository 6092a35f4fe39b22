// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/folder"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// background is the context for zones that run no program.
var background = context.Background()

// For any name of a volume, and of a file in the folder, no path leads out of the folder. No file
// counts as two kinds of object, and nothing outside changes.
func FuzzPaths(f *testing.F) {
	root := memory(f)
	dir := filepath.Join(root, "zone")
	if err := os.WriteFile(filepath.Join(root, "x"+suffix), []byte("another's"), 0o600); err != nil {
		f.Fatal(err)
	}
	z, err := Open(background, Config{Dir: dir, Base: 64 << 30, Size: pool.Gigabyte}, &stargatectl.Tools{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { z.Close() })
	for _, s := range []string{"v", "../x", "/etc/passwd", "", ".", "..", "a/b", "a\x00", "s-1@v.snapshot", ".making-v", ".from-v", "v@w", "-f", "x\n"} {
		f.Add(s, s+suffix)
		f.Add(s, "s-1@"+s+".snapshot")
	}
	f.Fuzz(func(t *testing.T, name, file string) {
		if _, err := z.Get(background, name); !errkind.Is(err, errkind.NotFound) {
			t.Errorf("volume %q: %v", name, err)
		}
		if _, err := z.Snapshot(background, pool.ID{Name: name}); !errkind.Is(err, errkind.NotFound) {
			t.Errorf("snapshot %q: %v", name, err)
		}
		for _, err := range []error{z.Delete(background, name), z.DeleteSnapshot(background, pool.ID{Name: name})} {
			if err != nil {
				t.Errorf("%q: %v", name, err)
			}
		}
		volume, isVolume := volumeName(file)
		snapshot, source, isSnapshot := folder.Snapshot(file)
		if isVolume && isSnapshot || isVolume && z.path(volume) != filepath.Join(dir, file) ||
			isSnapshot && z.folder.Called(snapshot, source) != filepath.Join(dir, file) {
			t.Errorf("file %q counts as volume %q, and as snapshot %q of %q", file, volume, snapshot, source)
		}
		if pool.ValidName(name) && (filepath.Dir(z.path(name)) != dir || filepath.Dir(z.folder.Path(folder.Making, name)) != dir) {
			t.Errorf("%q leads to %q", name, z.path(name))
		}
		if left, err := os.ReadFile(filepath.Join(root, "x"+suffix)); err != nil || string(left) != "another's" {
			t.Fatalf("%q: the neighbour is %q, %v", name, left, err)
		}
	})
}
