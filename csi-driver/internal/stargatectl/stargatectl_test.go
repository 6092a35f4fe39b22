// SPDX-License-Identifier: Apache-2.0

package stargatectl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// programs returns Tools whose programs run script.
func programs(t *testing.T, script string) *Tools {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{Ctl, Mkfs} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tools, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// Each program counts the programs that run at the same time. They include the programs that hold a
// file.
func TestProgramsAtOnce(t *testing.T) {
	dir := t.TempDir()
	tools := programs(t, "cd "+dir+" && touch run.$$ && sleep 0.2 && ls | wc -l && rm run.$$")
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var g sync.WaitGroup
	for i := range 3 * atOnce {
		g.Add(1)
		go func() {
			defer g.Done()
			called := tools
			if i%2 == 0 {
				called = tools.Holding(null)
			}
			out, err := called.Run(context.Background(), Ctl)
			if err != nil {
				t.Error(err)
				return
			}
			count, err := strconv.Atoi(strings.TrimSpace(string(out)))
			if err != nil || count > atOnce {
				t.Errorf("%d programs ran at the same time: %v", count, err)
			}
		}()
	}
	g.Wait()
}

// A call that waits for other programs ends when its context ends.
func TestWaitsNoLonger(t *testing.T) {
	tools := programs(t, "exec sleep 60")
	running, stop := context.WithCancel(context.Background())
	var g sync.WaitGroup
	for range atOnce {
		g.Add(1)
		go func() {
			defer g.Done()
			_, _ = tools.Run(running, Ctl)
		}()
	}
	for len(tools.running) < atOnce {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := tools.Run(ctx, Ctl); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that waits for other programs ends with %v", err)
	}
	stop()
	g.Wait()
	if len(tools.running) > 0 {
		t.Errorf("%d programs still count as running", len(tools.running))
	}
}

// Reads do not wait for programs that run for a long time.
func TestLooksDoNotWaitForWork(t *testing.T) {
	tools := programs(t, `case "$1" in -j) echo {} ;; *) exec sleep 60 ;; esac`)
	working, stop := context.WithCancel(context.Background())
	var g sync.WaitGroup
	for range 2 * atOnce {
		g.Add(1)
		go func() {
			defer g.Done()
			_, _ = tools.Run(working, Ctl, "volume", "create")
		}()
	}
	for len(tools.running) < atOnce {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := tools.JSON(ctx, &struct{}{}, "zone", "show"); err != nil {
		t.Errorf("a look: %v", err)
	}
	stop()
	g.Wait()
}

// Reads do not wait for the reads of changes either, which may hang as long as the change may last.
func TestLooksDoNotWaitForLooksOfChanges(t *testing.T) {
	tools := programs(t, `case "$3" in hangs) exec sleep 60 ;; *) echo {} ;; esac`)
	working, stop := context.WithCancel(Changing(context.Background()))
	var g sync.WaitGroup
	for range 2 * looksAtOnce {
		g.Add(1)
		go func() {
			defer g.Done()
			_ = tools.JSON(working, &struct{}{}, "info", "hangs")
		}()
	}
	for len(tools.lookingToChange)+len(tools.looking) < looksAtOnce {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := tools.JSON(ctx, &struct{}{}, "info", "answers"); err != nil {
		t.Errorf("a look: %v", err)
	}
	stop()
	g.Wait()
}

// A read that hangs ends before its caller's limit, so that the caller can examine the next volume.
// The error names the volume.
func TestLookLeavesTimeForOthers(t *testing.T) {
	tools := programs(t, `case "$3" in *hangs) exec sleep 60 ;; *) echo '{"size": 7}' ;; esac`)
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	if _, err := tools.Info(ctx, "/zone/hangs"); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "info /zone/hangs: has not ended within") {
		t.Errorf("%v; its caller: %v", err, ctx.Err())
	}
	if info, err := tools.Info(ctx, "/zone/answers"); err != nil || info.Size != 7 {
		t.Errorf("the read of the next volume: %+v, %v", info, err)
	}
	for left, want := range map[time.Duration]time.Duration{
		time.Hour: lookLimit, 20 * time.Second: 10 * time.Second, 6 * time.Second: 4 * time.Second, time.Millisecond: leastShare,
	} {
		ctx, cancel := context.WithTimeout(context.Background(), left)
		if got := share(ctx, lookLimit).Round(time.Second); got != want {
			t.Errorf("with %s left, the limit of a read is %s, and should be %s", left, got, want)
		}
		cancel()
	}
	if got := share(context.Background(), lookLimit); got != lookLimit {
		t.Errorf("without a limit of the caller, the limit of a read is %s", got)
	}
}

// The error of a read of thousands of volumes is short enough to be read.
func TestLongCommands(t *testing.T) {
	tools := programs(t, "kill -9 $$")
	paths := make([]string, 1000)
	for i := range paths {
		paths[i] = "/zone/v" + strconv.Itoa(i)
	}
	_, err := tools.Look(context.Background(), paths)
	if err == nil || !strings.Contains(err.Error(), "look /zone/v0 /zone/v1 ") || !strings.Contains(err.Error(), " more: ") || len(err.Error()) > 1000 {
		t.Errorf("%.2000v", err)
	}
}
