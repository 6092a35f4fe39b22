// SPDX-License-Identifier: Apache-2.0

package grpcserver

import (
	"os"
	"path/filepath"
	"testing"
)

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func listen(t *testing.T, path string) interface{ Close() error } {
	t.Helper()
	l, err := Listen("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSocketGoesWithItsServer(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "driver.sock")
	first := listen(t, path)
	st, err := os.Lstat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v: not only root can open the socket", st, err)
	}
	second := listen(t, path)
	first.Close()
	if !there(path) {
		t.Error("the predecessor has removed the successor's socket")
	}
	second.Close()
	second.Close() // as gRPC may
	third := listen(t, path)
	second.Close()
	if !there(path) {
		t.Error("the close of a socket has removed the successor's socket")
	}
	third.Close()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v remains after the last socket was closed", left)
	}
}
