// SPDX-License-Identifier: Apache-2.0

package filezone

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/tools"
	"stargate/csi-driver/internal/zone"
)

// Where bytes outlive the node a zone is the same one as long as its folder's lock is the same file, whoever opens
// it; what is torn is made anew. In memory it is the same one as long as its folder is called so.
func TestIdentity(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "zone")
	open := func() string {
		t.Helper()
		z, err := Open(background, Config{Dir: dir, Base: 64 << 30, Size: zone.Gigabyte}, &tools.Tools{})
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		id, err := z.ID(background)
		if _, ok := zone.ParseID("v@" + id); err != nil || !ok {
			t.Errorf("its identity is %q, %v", id, err)
		}
		return id
	}
	first := open()
	if again := open(); again != first {
		t.Errorf("it is %s, and then %s", first, again)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	memory := st.Type == unix.TMPFS_MAGIC
	lock := filepath.Join(dir, lockName)
	for what, text := range map[string]string{"torn": "0123", "of an earlier driver": "", "none": "not a word of its own, as it should be"} {
		if err := os.WriteFile(lock, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if made := open(); (made == first) != memory || made != open() {
			t.Errorf("%s: it was %s, and is %s", what, first, made)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if made := open(); (made == first) != memory {
		t.Errorf("another folder of that name is %s, too", made)
	}
}
