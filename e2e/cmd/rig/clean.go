// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clean removes cached entries, and folders of ended runs. It keeps entries that another process of
// the rig uses or makes at this moment.
func clean(r rig, args []string) error {
	if err := parse(flag.NewFlagSet("clean", flag.ContinueOnError), "", 0, 0, args); err != nil {
		return err
	}
	entries, err := r.cache.Entries("")
	if err != nil {
		return err
	}
	var freed int64
	kept := 0
	for _, path := range entries {
		size := diskUsage(path)
		removed, err := r.cache.Remove(path)
		if err != nil {
			return fmt.Errorf("removing %s: %w", path, err)
		}
		if !removed {
			kept++
			fmt.Println("in use: ", path)
			continue
		}
		freed += size
		fmt.Println("removed:", path)
	}
	folders, err := leftFolders(string(r.cache))
	if err != nil {
		return err
	}
	for _, path := range folders {
		freed += diskUsage(path)
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing %s: %w", path, err)
		}
		fmt.Println("removed:", path)
	}
	fmt.Printf("%d MiB freed: %d of the cache's %d entries and %d folders of runs removed; %d entries are in use, including this program\n",
		freed>>20, len(entries)-kept, len(entries), len(folders), kept)
	return nil
}

// A folder younger than young may not have its pid file yet.
const young = time.Minute

// leftFolders returns the folders with logs of ended runs, and folders that remain from an
// interrupted compilation of the rig.
func leftFolders(cache string) ([]string, error) {
	runs, err := filepath.Glob(filepath.Join(os.TempDir(), "stargate-rig-*"))
	if err != nil {
		return nil, err
	}
	builds, err := filepath.Glob(filepath.Join(cache, "rig-build.*"))
	if err != nil {
		return nil, err
	}
	var over []string
	for _, dir := range append(runs, builds...) {
		if info, err := os.Stat(dir); err != nil || time.Since(info.ModTime()) < young || alive(filepath.Join(dir, "pid")) {
			continue
		}
		over = append(over, dir)
	}
	return over, nil
}

// alive reads a process number from a file, and reports whether that process exists.
func alive(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return err == nil && syscall.Kill(pid, 0) == nil
}
