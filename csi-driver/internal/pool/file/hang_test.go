// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stargate/csi-driver/internal/pool"
)

// hangs returns a zone with one volume of 32 MiB. After a call of hang, the zone's next tool hangs
// until its caller ends it. hung is closed when the tool hangs.
func hangs(t *testing.T) (z *Zone, hang func() (hung <-chan struct{})) {
	t.Helper()
	dir := t.TempDir()
	flag := filepath.Join(dir, "hang")
	text := "#!/bin/sh\nif mv " + flag + " " + flag + "s 2>/dev/null; then exec sleep 600; fi\n" + script[len("#!/bin/sh\n"):]
	z = zoneWith(t, toolsOf(t, text, text))
	line := fmt.Sprintf(`{"base": "%#x", "size": %d, "max_size": %d}`+"\n", z.config.Base, 32<<20, 64<<20)
	err := os.WriteFile(z.path("v"), []byte(line), 0o600)
	if err == nil {
		err = os.Truncate(z.path("v"), 32<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	return z, func() <-chan struct{} {
		if err := os.WriteFile(flag, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		hung := make(chan struct{})
		go func() {
			for {
				if _, err := os.Stat(flag + "s"); err == nil {
					close(hung)
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		return hung
	}
}

// A change whose tool hangs delays no other call.
func TestLooksDoNotWaitForAChange(t *testing.T) {
	for what, change := range map[string]func(context.Context, *Zone) error{
		"create": func(ctx context.Context, z *Zone) error {
			_, err := z.Create(ctx, pool.Spec{Name: "w", Size: 16 << 20, Align: pool.Extent})
			return err
		},
		"grow": func(ctx context.Context, z *Zone) error { _, err := z.Grow(ctx, "v", 64<<20); return err },
	} {
		z, hang := hangs(t)
		ctx, cancel := context.WithCancel(background)
		done := make(chan error, 1)
		hung := hang()
		go func() { done <- change(ctx, z) }()
		<-hung
		within, end := context.WithTimeout(background, 20*time.Second)
		for look, err := range map[string]func() error{
			"status": func() error { _, err := z.Status(within); return err },
			"list":   func() error { _, err := z.List(within); return err },
			"get":    func() error { _, err := z.Get(within, "v"); return err },
			"another change": func() error {
				return z.reserve(within, pool.Spec{Name: "x", Size: 16 << 20, Align: pool.Extent})
			},
		} {
			answered := make(chan error, 1)
			go func() { answered <- err() }()
			select {
			case err := <-answered:
				if err != nil {
					t.Errorf("%s: %s: %v", what, look, err)
				}
			case <-within.Done():
				t.Errorf("%s: %s waits for a tool that hangs", what, look)
			}
		}
		end()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
