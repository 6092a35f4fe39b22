// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
)

// Limits of a read of a node with 1,000 volumes. The number of programs does not depend on the
// number of volumes. The limit is for processor time, because other tests also use the processors.
const (
	manyVolumes = 1000
	scrapeLimit = 2 * time.Second
	// Processor time of the scrape, and of the reads that the driver makes meanwhile.
	mostPrograms = 8
)

// processorTime returns the processor time of this process, which includes the driver, and of its
// programs.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var all time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if err := unix.Getrusage(who, &u); err != nil {
			t.Fatal(err)
		}
		all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return all
}

// counted installs tools that write a line to a log at each call.
func counted(t *testing.T, tools string) (dir string, calls func() []string) {
	t.Helper()
	dir = t.TempDir()
	log := filepath.Join(dir, "log")
	for _, name := range []string{"stargatectl", "mkfs.stargatefs"} {
		script := fmt.Sprintf("#!/bin/sh\nprintf '%%.40s\\n' \"$*\" >>'%s'\nexec '%s' \"$@\"\n", log, filepath.Join(tools, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func() []string {
		text, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		_ = os.Remove(log)
		return strings.Split(string(text), "\n")[:strings.Count(string(text), "\n")]
	}
}

func TestManyVolumes(t *testing.T) {
	n := newNode(t, manyVolumes*32*mib, "1g")
	mkfs := filepath.Join(n.config.ToolsDir, "mkfs.stargatefs")
	dir, calls := counted(t, n.config.ToolsDir)
	n.config.ToolsDir = dir
	n.config.HTTP = freePort(t)
	for i := range manyVolumes {
		name := fmt.Sprintf("pvc-%04d", i)
		said, err := exec.Command(mkfs, "--sparse", "--size", "16M", "--phys", fmt.Sprint(64*gib+int64(i)*16*mib), n.zoneFile(name)).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v", said, err)
		}
		at := filepath.Join(n.config.Sysfs, name)
		if err = os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"dev": n.zoneFile(name), "state": "writable", "slot": "0", "epoch": "", "journal": "", "operations": "", "errors": ""} {
			if err := os.WriteFile(filepath.Join(at, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	n.start()
	// The driver reads the zone when it starts. This read has ended when no program has begun
	// for 5 s.
	for quiet := 0; quiet < 10; time.Sleep(500 * time.Millisecond) {
		if quiet++; len(calls()) > 0 {
			quiet = 0
		}
	}
	calls()
	start, before := time.Now(), processorTime(t)
	_, text := get(t, "http://"+n.config.HTTP+"/metrics")
	took, used := time.Since(start), processorTime(t)-before
	if got := strings.Count(text, "\nstargate_volume_used_bytes{"); got != manyVolumes {
		t.Fatalf("the metrics have %d volumes", got)
	}
	if ran := calls(); len(ran) > mostPrograms {
		t.Errorf("a scrape runs %d programs: %q", len(ran), ran[:3])
	}
	t.Logf("a scrape of %d volumes takes %v, %v of a processor", manyVolumes, took, used)
	if used > scrapeLimit {
		t.Errorf("a scrape takes %v of a processor", used)
	}
	calls()
	res, err := n.ListVolumes(background, &csi.ListVolumesRequest{MaxEntries: 2})
	if err != nil || len(res.GetEntries()) != 2 {
		t.Fatalf("%d volumes are listed, %v", len(res.GetEntries()), err)
	}
	if ran := calls(); len(ran) > mostPrograms {
		t.Errorf("a list runs %d programs: %q", len(ran), ran[:3])
	}
}
