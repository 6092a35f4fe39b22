// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// Members of a volume can store anything in it. The driver can still read, create and delete all
// other volumes, before and after a restart. It can also delete this volume.
func TestHostileVolume(t *testing.T) {
	const m = int64(1) << 20
	whole := fmt.Sprintf(`"base": "0x%x", "size": %d, "max_size": %d`, 64<<30, 32*m, 64*m)
	lines := map[string]string{
		"no JSON": "{", "another type": `{"size": "much"}`, "a hang": "hang", "a base without end": `{` + whole + `, "base": "0xffffffffffffffff"}`,
	}
	for _, field := range []string{"size", "max_size", "lease_ms", "errors"} {
		for _, number := range []string{"18446744073709551615", "9223372036854775808"} {
			lines[field+" "+number] = fmt.Sprintf(`{%s, %q: %s}`, whole, field, number)
		}
	}
	text := "#!/bin/sh\nif [ \"$(head -n 1 \"$3\")\" = hang ]; then trap '' TERM; exec sleep 600; fi\n" + script[len("#!/bin/sh\n"):]
	programs := toolsOf(t, text, text)
	for what, line := range lines {
		config := Config{Dir: filepath.Join(memory(t), "zone"), Base: 64 << 30, Size: pool.Gigabyte}
		open := func() *Zone {
			t.Helper()
			z, err := Open(background, config, programs.Within(time.Second/2))
			if err != nil {
				t.Fatal(err)
			}
			return z
		}
		z := open()
		put := func(name, line string) {
			t.Helper()
			err := os.WriteFile(z.path(name), []byte(line+"\n"), 0o600)
			if err == nil {
				err = os.Truncate(z.path(name), 32*m)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		put("good", fmt.Sprintf(`{"base": "0x%x", "size": %d, "max_size": %d}`, 64<<30+32*m, 32*m, 64*m))
		put("evil", "{"+whole+"}")
		look := func(when string) {
			t.Helper()
			if s, err := z.Status(background); err != nil || s.Volumes != 2 {
				t.Errorf("%s, %s: status: %+v, %v", what, when, s, err)
			}
			if all, err := z.List(background); err != nil || len(all) != 2 {
				t.Errorf("%s, %s: list: %d volumes, %v", what, when, len(all), err)
			}
			if v, err := z.Get(background, "good"); err != nil || v.State != pool.Ready {
				t.Errorf("%s, %s: get: %+v, %v", what, when, v, err)
			}
		}
		make := func(when string) {
			t.Helper()
			if err := z.reserve(background, pool.Spec{Name: "new", Size: 16 * m, Align: pool.Extent}); err != nil {
				t.Errorf("%s, %s: create: %v", what, when, err)
			}
			z.release("new")
		}
		look("untouched")
		time.Sleep(20 * time.Millisecond) // the file system's clock advances in ticks
		put("evil", line)
		look("while it runs")
		make("while it runs")
		z.Close()
		z = open()
		look("after a restart")
		make("after a restart")
		held, err := os.OpenFile(z.path("evil"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := z.Delete(background, "evil"); line == "hang" && err == nil {
			t.Errorf("%s: the driver deletes the volume although a process can store in it", what)
		}
		held.Close()
		if err := z.Delete(background, "evil"); err != nil {
			t.Errorf("%s: delete: %v", what, err)
		}
		if _, err := z.Get(background, "evil"); !errkind.Is(err, errkind.NotFound) {
			t.Errorf("%s: %v", what, err)
		}
		make("when it is deleted")
		z.Close()
	}
}
