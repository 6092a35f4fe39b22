// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "versions.env")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	set, err := Read(write(t, "# comment\n\nA=1\nLIST=a,b\n"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := set.List("LIST")
	if err != nil || !reflect.DeepEqual(list, []string{"a", "b"}) || set["A"] != "1" {
		t.Errorf("got %v, %v, %v", set, list, err)
	}
	if _, err := set.Get("B"); err == nil {
		t.Error("Get returned no error for a missing key")
	}
}

func TestRefusals(t *testing.T) {
	for _, text := range []string{"A", "A=\"x\"", "A=1 2", "A = 1", "A=1\nA=2"} {
		if _, err := Read(write(t, text)); err == nil {
			t.Errorf("accepted: %q", text)
		}
	}
}

func TestTheProjectsOwnFile(t *testing.T) {
	set, err := Read("../../../versions.env")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.List("KERNELS"); err != nil {
		t.Error(err)
	}
}
