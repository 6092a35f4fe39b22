// SPDX-License-Identifier: Apache-2.0

// chartlimits flags FLAG... | class NAME=VALUE: says whether the driver takes these flags, or this parameter of a
// StorageClass. mk/run-chart has the chart asked the same: what it lets through, and the driver does not take, ends the
// driver on each node, or has each claim refused.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"stargate/csi-driver/internal/app"
	"stargate/csi-driver/internal/driver"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "chartlimits flags FLAG... | class NAME=VALUE")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func check(what string, args []string) error {
	if what == "class" {
		given := map[string]string{}
		for _, a := range args {
			name, value, _ := strings.Cut(a, "=")
			given[name] = value
		}
		return driver.CheckClass(given)
	}
	var c app.Config
	flags := flag.NewFlagSet("stargate-csi", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	c.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	return c.Check()
}
