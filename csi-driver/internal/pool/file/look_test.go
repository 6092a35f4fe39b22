// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/folder"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// Volumes are files in these tests. The first line of a file is stargatectl's output about the
// volume.
const script = `#!/bin/sh
if [ "$2" = look ]; then
	shift 2
	more=
	echo '{"volumes": ['
	for file; do
		line=$(head -n 1 "$file")
		case $line in "{"*) echo "$more{\"path\": \"$file\", \"info\": $line}"; more=, ;; esac
	done
	echo ']}'
	exit
fi
line=$(head -n 1 "$3")
case $line in "{"*) echo "$line" ;; *) echo "stargatectl: $3: not a volume" >&2; exit 1 ;; esac
`

func scripted(t *testing.T) *stargatectl.Tools {
	t.Helper()
	return toolsOf(t, script, script)
}

// toolsOf returns tools that run these scripts as stargatectl and mkfs.stargatefs.
func toolsOf(t *testing.T, ctl, mkfs string) *stargatectl.Tools {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{stargatectl.Ctl: ctl, stargatectl.Mkfs: mkfs} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	programs, err := stargatectl.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	return programs
}

// zoneWith returns an empty zone with these tools.
func zoneWith(t *testing.T, programs *stargatectl.Tools) *Zone {
	t.Helper()
	z, err := Open(background, Config{Dir: filepath.Join(memory(t), "zone"), Base: 64 << 30, Size: pool.Gigabyte}, programs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.Close() })
	return z
}

// A file keeps its address while it exists, even if its content changes. The driver reads the
// address of an earlier driver's file once. While this address is unknown, the driver reserves no
// addresses.
func TestAddressesOfChangedFiles(t *testing.T) {
	const m = int64(1) << 20
	config := Config{Dir: filepath.Join(memory(t), "zone"), Base: 64 << 30, Size: pool.Gigabyte}
	programs := scripted(t)
	open := func() *Zone {
		t.Helper()
		z, err := Open(background, config, programs)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { z.Close() })
		return z
	}
	z := open()
	put := func(line string) {
		t.Helper()
		time.Sleep(20 * time.Millisecond) // the file system's clock advances in ticks
		path := z.path("v")
		err := os.WriteFile(path, []byte(line+"\n"), 0o600)
		if err == nil {
			err = os.Truncate(path, 32*m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(base int64) string {
		return fmt.Sprintf(`{"base": "%#x", "size": %d, "max_size": %d}`, base, 32*m, 64*m)
	}
	largest := func(when string, want int64, damaged bool) {
		t.Helper()
		s, err := z.Status(background)
		if err != nil || s.Largest != want || s.Damaged != damaged || damaged != strings.Contains(s.Why, "volume v cannot be read") {
			t.Errorf("%s: %d MiB in one piece, damaged %v (%s), %v; should be %d", when, s.Largest/m, s.Damaged, s.Why, err, want/m)
		}
	}
	put(at(config.Base))
	largest("made", 992*m, false)
	state := func(when string, want pool.State) {
		t.Helper()
		if v, err := z.Get(background, "v"); err != nil || v.State != want {
			t.Errorf("%s: %+v, %v", when, v, err)
		}
	}
	state("made", pool.Ready)
	put(at(config.Base + 512*m))
	largest("a member has written another address", 992*m, false)
	state("a member has written another address", pool.Moved)
	put("damaged")
	largest("damaged", 992*m, false)
	state("damaged", pool.Damaged)
	z.Close()
	z = open()
	largest("damaged before the start", 992*m, false)
	z.Close()
	if err := os.Remove(z.folder.Path(place, "v")); err != nil {
		t.Fatal(err)
	}
	z = open()
	largest("a damaged file of an earlier driver", 0, true)
	if _, err := z.Create(background, pool.Spec{Name: "w", Size: 16 * m, Align: pool.Extent}); !errkind.Is(err, errkind.NoSpace) || !strings.Contains(err.Error(), "volume v") {
		t.Errorf("the driver creates a volume at an address that another volume may have: %v", err)
	}
	if v, err := z.Get(background, "v"); err != nil || v.State != pool.Damaged {
		t.Errorf("%+v, %v", v, err)
	}
	if err := z.Delete(background, "v"); err != nil {
		t.Error(err)
	}
	largest("deleted", 1024*m, false)
}

// The driver uses an address that it read from a file only for that file. It does not use the
// address for another file with the same inode number, or after a later write. This holds for one
// file, and for many files at the same time.
func TestReusedInode(t *testing.T) {
	const m = int64(1) << 20
	for _, names := range [][]string{{"v"}, {"v", "w", "x"}} {
		config := Config{Dir: filepath.Join(memory(t), "zone"), Base: 64 << 30, Size: pool.Gigabyte}
		z, err := Open(background, config, scripted(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { z.Close() })
		known := addresses{}
		for _, base := range []int64{config.Base, config.Base + 512*m} {
			time.Sleep(20 * time.Millisecond) // the file system's clock advances in ticks
			for i, name := range names {
				line := fmt.Sprintf(`{"base": "%#x", "size": %d, "max_size": %d}`+"\n", base+int64(i)*64*m, 32*m, 64*m)
				err := os.WriteFile(z.path(name), []byte(line), 0o600)
				if err == nil {
					err = os.Truncate(z.path(name), 32*m)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			// An earlier driver has stored no places.
			for _, name := range names {
				if err := folder.Remove(z.folder.Path(place, name)); err != nil {
					t.Fatal(err)
				}
			}
			if err := z.learn(background, known); err != nil {
				t.Fatal(err)
			}
			z.mu.Lock()
			is, err := z.takenLocked(known)
			z.mu.Unlock()
			for i, name := range names {
				if want := base + int64(i)*64*m; err != nil || is.changing != "" || is.of[name].Base != want {
					t.Errorf("%s of %d files should be at %#x, and is at %#x, changing %q, %v", name, len(names), want, is.of[name].Base, is.changing, err)
				}
			}
		}
	}
}

// A member of an earlier driver's volume changes the volume's file at every read. A call that needs
// all addresses still ends. It assumes that this volume may have any address.
func TestFileChangesAtEachLook(t *testing.T) {
	text := "#!/bin/sh\nif [ \"$2\" = info ]; then sleep 0.02; touch \"$3\"; fi\n" + script[len("#!/bin/sh\n"):]
	z := zoneWith(t, toolsOf(t, text, text))
	if err := os.WriteFile(z.path("evil"), []byte("damaged\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	z.says(t, "good", 64<<30+512*mib)
	ctx, cancel := context.WithTimeout(background, 20*time.Second)
	defer cancel()
	if s, err := z.Status(ctx); err != nil || !s.Damaged || s.Largest != 0 || !strings.Contains(s.Why, "volume evil cannot be read") {
		t.Errorf("%+v, %v", s, err)
	}
	v, err := z.Get(ctx, "good")
	if err != nil || v.State != pool.Ready {
		t.Errorf("the other volume is %+v, %v", v, err)
	}
	// The addresses behind the volume may be free at a later read, so the size may be possible.
	if _, err := z.extend(ctx, v, 64*mib); !errkind.Is(err, errkind.Busy) || !strings.Contains(err.Error(), "volume evil changes") {
		t.Errorf("the growth of the other volume does not fail with Busy: %v", err)
	}
	// The file system's own limit is the same at each read.
	if _, err := z.extend(ctx, v, 128*mib); !errkind.Is(err, errkind.OutOfRange) {
		t.Errorf("the other volume grows beyond its largest size: %v", err)
	}
	if err := z.Delete(ctx, "evil"); err != nil {
		t.Error(err)
	}
	if s, err := z.Status(ctx); err != nil || s.Damaged || s.Largest != 512*mib {
		t.Errorf("after the deletion of the volume: %+v, %v", s, err)
	}
}
