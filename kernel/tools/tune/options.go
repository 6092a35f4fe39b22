// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stargate/tune/internal/system"
)

// options has the values of all flags; each command takes some of them.
type options struct {
	guest, json, dedicated, patch, dryRun, force, boot bool
	seconds                                            float64
	svg, symbols, vm                                   string
	from                                               []string
	sys                                                system.System
}

// parse reads flags before, between and after the words of a command.
func parse(c command, arguments []string) (*options, []string, error) {
	o := &options{seconds: 3, sys: system.System{Root: "/"}}
	switches := map[string]*bool{"guest": &o.guest, "json": &o.json, "dedicated": &o.dedicated, "patch": &o.patch,
		"dry-run": &o.dryRun, "force": &o.force, "boot": &o.boot}
	texts := map[string]func(string) error{
		"svg":     func(text string) error { o.svg = text; return nil },
		"symbols": func(text string) error { o.symbols = text; return nil },
		"vm":      func(text string) error { o.vm = text; return nil },
		"from":    func(text string) error { o.from = append(o.from, text); return nil },
		"seconds": func(text string) error {
			seconds, err := strconv.ParseFloat(text, 64)
			if err != nil || !(seconds >= 0.1 && seconds <= 3600) {
				return usagef("--seconds '%s': must be a number from 0.1 to 3600", text)
			}
			o.seconds = seconds
			return nil
		},
		"root": func(text string) error {
			if info, err := os.Stat(text); err != nil || !info.IsDir() {
				return usagef("--root '%s': must be an existing folder", text)
			}
			o.sys.Root = text
			return nil
		},
	}
	var words []string
	for i := 0; i < len(arguments); i++ {
		word := arguments[i]
		if word == "--" {
			return o, append(words, arguments[i+1:]...), nil
		}
		if !strings.HasPrefix(word, "-") || word == "-" {
			words = append(words, word)
			continue
		}
		name, value, given := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if word == "-j" {
			name = "json"
		}
		if !slices.Contains(c.flags, name) {
			return nil, nil, usagef("%s takes no option %s: see --help", c.name, word)
		}
		if on, isSwitch := switches[name]; isSwitch {
			if given {
				return nil, nil, usagef("--%s takes no value", name)
			}
			*on = true
			continue
		}
		if !given {
			if i++; i >= len(arguments) {
				return nil, nil, usagef("--%s needs a value: see --help", name)
			}
			value = arguments[i]
		}
		if err := texts[name](value); err != nil {
			return nil, nil, err
		}
	}
	return o, words, nil
}

// pause waits for the time of a measurement, or until a signal ends it, and returns the seconds of
// the wait. In another root no counter changes, so it does not wait.
func (o *options) pause() float64 {
	if !o.sys.Live() {
		return o.seconds
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(ended)
	began := time.Now()
	select {
	case <-ended:
	case <-time.After(time.Duration(o.seconds * float64(time.Second))):
	}
	return max(0.001, time.Since(began).Seconds())
}
