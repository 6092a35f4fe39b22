// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"

	"stargate/e2e/internal/kernel"
	"stargate/e2e/internal/lab"
)

// qemu runs the rig's emulator with this host's accelerator. It is for VMs that are not the rig's
// guests, for example an unchanged Debian with its own disk and network.
func qemu(r rig, args []string) error {
	flags := flag.NewFlagSet("qemu", flag.ContinueOnError)
	if err := parse(flags, "-- ARGUMENT...", 1, -1, args); err != nil {
		return err
	}
	k, err := r.kernel(r.versions["KERNEL_DEFAULT"])
	if err != nil {
		return err
	}
	assets, err := lab.Prepare(r.cache, r.versions, []kernel.Kernel{k})
	if err != nil {
		return err
	}
	return assets.QEMU.Exec(assets.Accel, flags.Args(), os.Environ())
}
