// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"stargate/e2e/internal/klog"
)

// judge searches kernel logs for errors, as the rig does at the end of a run. It is for the logs of
// other VMs.
func judge(_ rig, args []string) error {
	flags := flag.NewFlagSet("judge", flag.ContinueOnError)
	if err := parse(flags, "LOG...", 1, -1, args); err != nil {
		return err
	}
	found := false
	for _, path := range flags.Args() {
		log, err := os.ReadFile(path)
		if err != nil {
			return misused("judge: %v", err)
		}
		for _, report := range klog.Find(string(log)) {
			fmt.Printf("%s:\n%s\n", path, strings.Join(report, "\n"))
			found = true
		}
	}
	if found {
		return status(statusUnsound)
	}
	return nil
}
