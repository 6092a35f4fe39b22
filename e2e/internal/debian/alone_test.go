// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// If the rig is killed while it fills its caches, no process continues to fill them.
func TestRunEndsWithTheRig(t *testing.T) {
	if beat := os.Getenv("BEAT"); beat != "" {
		_ = Run(alone("sh", "-c", `(while touch "$0"; do sleep 0.05; done) & wait`, beat)) // killed by then
		return
	}
	if os.Getuid() != 0 {
		t.Skip("namespaces are root's")
	}
	beat := filepath.Join(t.TempDir(), "beat")
	rig := exec.Command(os.Args[0], "-test.run=TestRunEndsWithTheRig")
	rig.Env = append(os.Environ(), "BEAT="+beat)
	if err := rig.Start(); err != nil {
		t.Fatal(err)
	}
	for i := 0; !exists(beat); i++ {
		if i == 600 {
			t.Fatal("it does not begin")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := rig.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = rig.Wait() // killed
	time.Sleep(time.Second)
	if err := os.Remove(beat); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if exists(beat) {
		t.Error("it goes on")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
