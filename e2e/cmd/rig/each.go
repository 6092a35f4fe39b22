// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stargate/e2e/internal/say"
)

// noLimit is the limit of a run with --each, in which each script has its own limit.
const noLimit = 1000 * time.Hour

// scriptLimit is the limit of a script without a limit in its header.
const scriptLimit = 15 * time.Minute

// oneOf is one of the scripts of --each.
type oneOf struct {
	path  string
	name  string
	limit time.Duration
}

// scripts returns the scripts of --each.
func (o *options) scripts() ([]oneOf, error) {
	if o.text != "" || len(o.script) == 0 {
		return nil, misused("run --each: each argument is the path of a script; -c is not possible")
	}
	var list []oneOf
	seen := map[string]string{}
	for _, path := range o.script {
		if err := checkReadable(path); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, misused("run: the script: %v", err)
		}
		one := oneOf{path: path, name: strings.TrimSuffix(filepath.Base(path), ".sh")}
		if other := seen[one.name]; other != "" {
			return nil, misused("run --each: %s and %s would both write %s.log", other, path, one.name)
		}
		seen[one.name] = path
		if one.limit, err = limitOf(string(text)); err != nil {
			return nil, misused("run --each: %s: %v", path, err)
		}
		list = append(list, one)
	}
	return list, nil
}

var limitLine = regexp.MustCompile(`^# limit: *(.*)$`)

// limitOf reads the limit from a script's header. The header is the comment at the script's top,
// and the limit is in seconds.
func limitOf(script string) (time.Duration, error) {
	for _, line := range strings.Split(script, "\n") {
		if line != "" && line[0] != '#' {
			break
		}
		if parts := limitLine.FindStringSubmatch(line); parts != nil {
			seconds, err := strconv.Atoi(parts[1])
			if err != nil || seconds < 1 {
				return 0, fmt.Errorf("its limit is %q, which is not a number of seconds", parts[1])
			}
			return time.Duration(seconds) * time.Second, nil
		}
	}
	return scriptLimit, nil
}

// eachScript runs one script after the other. Before each script, it restores the first state of
// the guests and of the volume. It prints each result at once.
func (s *session) eachScript() (int, error) {
	list, err := s.scripts()
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(s.each, 0o755); err != nil {
		return 0, err
	}
	code, failed := 0, false
	for i, one := range list {
		start := time.Now()
		if i > 0 {
			if err := s.lab.Renew(failed); err != nil {
				return 0, fmt.Errorf("before %s: %w", one.name, err)
			}
			say.Line("%s begins after %.1f s", one.name, time.Since(start).Seconds())
		}
		checks, wrong, err := s.runOne(one)
		if err != nil || s.abortStatus() != 0 {
			return 0, err
		}
		took := fmt.Sprintf("%.1f s", time.Since(start).Seconds())
		if failed = wrong != ""; failed {
			code = 1
			fmt.Printf("FAIL %s (%s, %s)\n", one.name, wrong, took)
		} else {
			fmt.Printf("ok %s (%s, %s)\n", one.name, checks, took)
		}
	}
	return code, nil
}

// runOne runs a script, and then checks the guests and the volume. It returns the number of checks,
// or a short description of the failure. The log has the full description.
func (s *session) runOne(one oneOf) (checks, wrong string, err error) {
	log, err := os.Create(filepath.Join(s.each, one.name+".log"))
	if err != nil {
		return "", "", err
	}
	defer log.Close()
	cmd, err := s.start([]string{one.path}, nil, log, log)
	if err != nil {
		return "", "", err
	}
	ended := make(chan struct{})
	late := make(chan bool, 1)
	go func() {
		select {
		case <-ended:
			late <- false
		case <-time.After(one.limit):
			fmt.Fprintf(log, "rig: no end after %s, its limit; waiting:\n%s", one.limit, s.lab.Where())
			s.endScript(cmd.Process.Pid, ended)
			late <- true
		}
	}()
	code, err := waitStatus(cmd)
	close(ended)
	if <-late {
		return "", fmt.Sprintf("no end after %s", one.limit), nil
	}
	if err != nil || s.abortStatus() != 0 {
		return "", "", err
	}
	found := s.lab.Verdict(s.fsck)
	for _, text := range found {
		fmt.Fprintf(log, "rig: FAILED: %s\n", text)
	}
	said, err := os.ReadFile(log.Name())
	if err != nil {
		return "", "", err
	}
	checks = checksIn(said)
	switch {
	case code != 0:
		wrong = fmt.Sprintf("status %d", code)
	case len(found) > 0:
		wrong, _, _ = strings.Cut(found[0], "\n")
		wrong = strings.TrimSuffix(wrong, ":")
	case checks == "":
		wrong = "nothing was checked"
	}
	return checks, wrong, nil
}

// endScript ends a script that has exceeded its limit. It also ends the guests, because the script
// may wait for them.
func (s *session) endScript(pid int, ended <-chan struct{}) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		// An error only means that the script has already ended.
		_ = syscall.Kill(-pid, sig)
		s.lab.KillAll()
		select {
		case <-ended:
			return
		case <-time.After(5 * time.Second): // the script's keeper ends all processes of the script
		}
	}
}

var checksLine = regexp.MustCompile(`(?m)^([1-9][0-9]* checks)\b`)

// checksIn returns the last number of checks in a script's output, for example "12 checks".
func checksIn(output []byte) string {
	all := checksLine.FindAll(bytes.TrimSpace(output), -1)
	if len(all) == 0 {
		return ""
	}
	return string(all[len(all)-1])
}
