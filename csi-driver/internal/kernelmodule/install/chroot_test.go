// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Run ends a program together with a child that hangs, like DKMS with its compiler.
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
	// The kernel ends a killed process with a delay, and init reaps it later.
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the started program continues: %s", stat)
		}
	}
}
