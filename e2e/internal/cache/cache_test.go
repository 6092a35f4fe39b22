// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func fillWith(text string) func(string) error {
	return func(tmp string) error {
		return os.WriteFile(filepath.Join(tmp, "file"), []byte(text), 0o644)
	}
}

func read(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEntryIsFilledOnceForItsInputs(t *testing.T) {
	c := Dir(t.TempDir())
	var fills int32
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			_, err := c.Entry("kind", []string{"a"}, func(tmp string) error {
				atomic.AddInt32(&fills, 1)
				return fillWith("a")(tmp)
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	all.Wait()
	if fills != 1 {
		t.Errorf("filled %d times", fills)
	}
	other, err := c.Entry("kind", []string{"b"}, fillWith("b"))
	if err != nil || read(t, other) != "b" {
		t.Errorf("other inputs: %v", err)
	}
}

func TestFailedFillLeavesNothing(t *testing.T) {
	c := Dir(t.TempDir())
	broken := errors.New("broken")
	_, err := c.Entry("kind", nil, func(tmp string) error {
		if err := fillWith("half")(tmp); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	left, err := filepath.Glob(string(c) + "/kind-*")
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestInterruptedFillIsRepeated(t *testing.T) {
	c := Dir(t.TempDir())
	part := c.Path("kind", nil) + ".part"
	if err := os.MkdirAll(filepath.Join(part, "stale"), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := c.Entry("kind", nil, fillWith("new"))
	if err != nil || read(t, dir) != "new" {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "stale")); err == nil {
		t.Error("remains of the interrupted fill are in the entry")
	}
}

func TestResume(t *testing.T) {
	c := Dir(t.TempDir())
	broken := errors.New("broken")
	if _, err := c.Resume("kind", nil, func(tmp string) error {
		if err := fillWith("first half")(tmp); err != nil {
			return err
		}
		return broken
	}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	dir, err := c.Resume("kind", nil, func(tmp string) error {
		_, err := os.Stat(filepath.Join(tmp, "file"))
		return err
	})
	if err != nil || read(t, dir) != "first half" {
		t.Error(err)
	}
}
