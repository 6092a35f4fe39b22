// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// If a signal kills the rig while it fills its caches, no other process continues to fill them.
func TestRunEndsWithTheRig(t *testing.T) {
	if beat := os.Getenv("BEAT"); beat != "" {
		_ = Run(alone("sh", "-c", `(while touch "$0"; do sleep 0.05; done) & wait`, beat)) // the test kills it
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can make namespaces")
	}
	beat := filepath.Join(t.TempDir(), "beat")
	rig := exec.Command(os.Args[0], "-test.run=TestRunEndsWithTheRig")
	rig.Env = append(os.Environ(), "BEAT="+beat)
	if err := rig.Start(); err != nil {
		t.Fatal(err)
	}
	for i := 0; !exists(beat); i++ {
		if i == 600 {
			t.Fatal("the program does not begin")
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := rig.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = rig.Wait() // the error is the signal
	time.Sleep(time.Second)
	if err := os.Remove(beat); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if exists(beat) {
		t.Error("the program continues after the rig's end")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
