// SPDX-License-Identifier: Apache-2.0

package kmod

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program that hangs in what it has started, as DKMS would in a compiler, ends with it.
func TestRunEndsAll(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	file := filepath.Join(t.TempDir(), "pid")
	begun := time.Now()
	_, err := Chroot{Dir: "/"}.Run(ctx, "sh", "-c", `sleep 1000 & echo $! >"$0"; wait`, file)
	if err == nil || time.Since(begun) > grace {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	pid, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Killed, it may be there until init has taken notice.
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
	if err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("what it has started goes on: %s", stat)
	}
}
