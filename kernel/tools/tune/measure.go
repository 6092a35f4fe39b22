// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"stargate/tune/internal/guest"
	"stargate/tune/internal/host"
	"stargate/tune/internal/picture"
)

func measure(o *options, words []string) error {
	if len(words) > 0 {
		return usagef("measure takes no %q: see --help", words[0])
	}
	if o.guest {
		if o.symbols != "" || o.svg != "" {
			return usagef("--symbols and --svg need a measurement on the host: remove --guest")
		}
		facts := guest.Collect(o.sys, o.pause)
		if o.json {
			return printJSON(facts)
		}
		showGuest(os.Stdout, facts)
		return nil
	}
	if o.sys.Live() && os.Geteuid() != 0 {
		return fmt.Errorf("measuring on a host needs root, because only root can read KVM's counters and traces; measure --guest works without root")
	}
	var symbols *host.Symbols
	if o.symbols != "" {
		var err error
		if symbols, err = host.LoadSymbols(o.symbols); err != nil {
			return fmt.Errorf("reading symbols: %w", err)
		}
	}
	facts := host.Collect(o.sys, symbols, o.pause)
	if o.svg != "" {
		if err := write(o.svg, picture.Exits(facts)); err != nil {
			return fmt.Errorf("drawing the picture: %w", err)
		}
	}
	if o.json {
		return printJSON(facts)
	}
	showHost(os.Stdout, facts)
	return nil
}

// write replaces a file, or on an error leaves it unchanged.
func write(path, text string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".stargate-tune-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(text); err != nil {
		_ = file.Close()
		return err
	}
	if err := file.Chmod(0o644); err != nil {
		_ = file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func printJSON(value any) error {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(value)
}
