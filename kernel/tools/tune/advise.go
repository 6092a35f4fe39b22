// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"stargate/tune/internal/advice"
	"stargate/tune/internal/guest"
	"stargate/tune/internal/host"
)

// longest is the maximum size of a file that the user names.
const longest = 16 << 20

func advise(o *options, words []string) error {
	if len(words) > 0 {
		return usagef("advise takes no %q: see --help", words[0])
	}
	if o.patch && o.vm == "" {
		return usagef("--patch needs --vm FILE")
	}
	if o.vm != "" {
		return adviseVM(o)
	}
	in, err := o.input()
	if err != nil {
		return err
	}
	found := advice.On(in)
	if o.json {
		return printJSON(found)
	}
	showAdvice(os.Stdout, found)
	return nil
}

func adviseVM(o *options) error {
	object, err := readFile(o.vm)
	if err != nil {
		return err
	}
	found, steps, err := advice.Patch(object, o.dedicated)
	if err != nil {
		return fmt.Errorf("%s: %w", o.vm, err)
	}
	switch {
	case o.patch:
		fmt.Println(advice.Text(steps))
		return nil
	case o.json:
		return printJSON(map[string]any{"advice": found, "patch": steps})
	}
	showAdvice(os.Stdout, found)
	if len(steps) > 0 {
		fmt.Printf("\nThe patch, which takes effect at the VM's next start:\n  kubectl patch vm NAME --type=json --patch '%s'\n", advice.Text(steps))
	}
	return nil
}

// input reads the files of measurements that the user names. Without such files, it measures this
// machine.
func (o *options) input() (advice.Input, error) {
	in := advice.Input{Dedicated: o.dedicated}
	for _, path := range o.from {
		data, err := readFile(path)
		if err != nil {
			return in, err
		}
		var kind struct{ Kind string }
		if err := json.Unmarshal(data, &kind); err != nil {
			return in, fmt.Errorf("%s is not a measurement: %w", path, err)
		}
		switch kind.Kind {
		case "guest":
			in.Guest = &guest.Facts{}
			err = json.Unmarshal(data, in.Guest)
		case "host":
			in.Host = &host.Facts{}
			err = json.Unmarshal(data, in.Host)
		default:
			err = fmt.Errorf("its kind is %q", kind.Kind)
		}
		if err != nil {
			return in, fmt.Errorf("%s is not a measurement (%w): use the output of `stargate-tune measure --json`", path, err)
		}
	}
	if len(o.from) > 0 {
		return in, nil
	}
	// A guest can also be a host: input measures both if both exist.
	signature, _, _ := o.sys.Hypervisor()
	isHost := o.sys.Exists("/sys/kernel/debug/kvm") && (!o.sys.Live() || os.Geteuid() == 0)
	if signature == "" && !isHost {
		return in, fmt.Errorf("this machine is not a guest, and this user may not measure VMs of KVM here: run the command as root")
	}
	if signature != "" {
		in.Guest = guest.Collect(o.sys, o.pause)
	}
	if isHost {
		in.Host = host.Collect(o.sys, nil, o.pause)
	}
	return in, nil
}

func readFile(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(os.Stdin, longest))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, longest+1))
	if err == nil && len(data) > longest {
		err = fmt.Errorf("%s has more than %d MiB", path, longest>>20)
	}
	return data, err
}
