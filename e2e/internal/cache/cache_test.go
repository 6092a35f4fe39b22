// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
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

// aged makes an entry without a user, whose last use was that many hours ago.
func aged(t *testing.T, c Dir, kind, input string, hours int) string {
	t.Helper()
	path := c.Path(kind, []string{input})
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	then := time.Now().Add(-time.Duration(hours) * time.Hour)
	if err := os.Chtimes(path, then, then); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOldEntriesGo(t *testing.T) {
	c := Dir(t.TempDir())
	inUse := aged(t, c, "kind", "in use", 100)
	other, err := lockFile(filepath.Join(mkdir(t, string(c), locks), filepath.Base(inUse)), syscall.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	unused := aged(t, c, "kind", "unused", 50)
	again := aged(t, c, "kind", "used again", 49)
	var young []string
	for i := 1; i < keepOthers-1; i++ {
		young = append(young, aged(t, c, "kind", fmt.Sprint(i), i))
	}
	stranger := aged(t, c, "kind-of", "another kind", 1000)
	if dir, err := c.Entry("kind", []string{"used again"}, nil); err != nil || dir != again {
		t.Fatal(err)
	}
	if _, err := c.Entry("kind", []string{"new"}, fillWith("new")); err != nil {
		t.Fatal(err)
	}
	if exists(unused) {
		t.Error("the unused entry still exists")
	}
	for _, path := range append(young, inUse, again, stranger) {
		if !exists(path) {
			t.Errorf("%s was removed", path)
		}
	}
}

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWhatIsUsedIsNotRemoved(t *testing.T) {
	c := Dir(t.TempDir())
	dir, err := c.Entry("kind", []string{"a"}, fillWith("a"))
	if err != nil {
		t.Fatal(err)
	}
	if removed, err := c.Remove(dir); removed || err != nil {
		t.Errorf("removed: %v, %v", removed, err)
	}
	_, err = c.Entry("kind", []string{"b"}, func(tmp string) error {
		if removed, err := c.Remove(tmp); removed || err != nil {
			t.Errorf("an entry was removed during its fill: %v, %v", removed, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	old := aged(t, c, "kind", "old", 1)
	if removed, err := c.Remove(old); !removed || err != nil || exists(old) {
		t.Errorf("an unused entry was not removed: %v, %v", removed, err)
	}
	left, err := filepath.Glob(filepath.Join(string(c), locks, filepath.Base(old)+"*"))
	if err != nil || len(left) != 0 {
		t.Errorf("locks: %v, %v", left, err)
	}
}

// If the disk is full, the error says so, even if the failed program does not. One such program is
// mmdebstrap.
func TestNoRoomIsTold(t *testing.T) {
	failure := errors.New("exit status 25")
	err := addRoom(failure, "/cache", 60<<20)
	if !errors.Is(err, failure) || !strings.Contains(err.Error(), "60 MiB are free in /cache") {
		t.Errorf("got %v", err)
	}
	if err := addRoom(failure, "/cache", enough); err != failure {
		t.Errorf("got %v", err)
	}
}
