// SPDX-License-Identifier: Apache-2.0

package filezone

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/tools"
	"stargate/csi-driver/internal/zone"
)

// logged is a zone whose tools say what scripted ones do, and note what they were asked.
func logged(t *testing.T) (z *Zone, asked func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	text := "#!/bin/sh\necho \"$*\" >>" + log + "\ncase $2 in slots | systems) cat " + dir + "/$2; exit ;; esac\n" + script[len("#!/bin/sh\n"):]
	for _, name := range []string{tools.Ctl, tools.Mkfs} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"slots", "systems"} {
		is := `{"` + name + `": [{"slot": 1, "incarnation": 2, "name": "a", "state": "recovering"}]}`
		if err := os.WriteFile(filepath.Join(dir, name), []byte(is), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	programs, err := tools.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	if z, err = Open(background, Config{Dir: filepath.Join(memory(t), "zone"), Base: 64 << 30, Size: zone.Gigabyte}, programs); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.Close() })
	return z, func() string {
		said, err := os.ReadFile(log)
		if err == nil {
			err = os.Remove(log)
		}
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(said)
	}
}

const mib = int64(1) << 20

// says has a volume's file say such an address. It stays as long as it is.
func (z *Zone) says(t *testing.T, name string, base int64) {
	t.Helper()
	f, err := os.OpenFile(z.path(name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, `{"base": "%#x", "size": %d, "max_size": %d}`+"\n", base, 32*mib, 64*mib); err != nil {
		t.Fatal(err)
	}
	if st, err := f.Stat(); err != nil || st.Size() < 32*mib {
		if err := f.Truncate(32 * mib); err != nil {
			t.Fatal(err)
		}
	}
}

// A slot that was being recovered by a machine which has been killed stays so. It keeps a volume only as long as somebody
// can store in it.
func TestNobodyRecoversAnyMore(t *testing.T) {
	z, _ := logged(t)
	z.says(t, "v", 64<<30)
	held, err := os.OpenFile(z.path("v"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Delete(background, "v"); !fault.Is(err, fault.Busy) {
		t.Errorf("somebody has it: %v", err)
	}
	held.Close()
	if err := z.Delete(background, "v"); err != nil {
		t.Errorf("nobody has it: %v", err)
	}
}
