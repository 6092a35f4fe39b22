// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// clean removes what the rig has cached, and folders of runs that are over.
func clean(r rig, args []string) error {
	if len(args) != 0 {
		return errors.New("usage: e2e/rig clean")
	}
	entries, err := r.entries()
	if err != nil {
		return err
	}
	runs, err := finishedRuns()
	if err != nil {
		return err
	}
	for _, path := range append(entries, runs...) {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("removing %s: %w", path, err)
		}
		fmt.Println("removed", path)
	}
	return nil
}

// finishedRuns are the folders with logs whose rig is not there any more.
func finishedRuns() ([]string, error) {
	all, err := filepath.Glob(filepath.Join(os.TempDir(), "stargate-rig-*"))
	if err != nil {
		return nil, err
	}
	var over []string
	for _, dir := range all {
		text, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err == nil {
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err == nil && syscall.Kill(pid, 0) == nil {
				continue
			}
		}
		over = append(over, dir)
	}
	return over, nil
}
