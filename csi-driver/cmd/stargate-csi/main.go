// SPDX-License-Identifier: Apache-2.0

// stargate-csi is the CSI driver of one node. It serves Identity, Controller and Node on one
// socket.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"stargate/csi-driver/internal/app"
)

// The build sets the version.
var version = "unversioned"

const usage = 2

func main() {
	var config app.Config
	flags := flag.NewFlagSet("stargate-csi", flag.ContinueOnError)
	config.Flags(flags)
	verbose := flags.Int("v", 2, "log level, 0 to 6")
	show := flags.Bool("version", false, "print the version")
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(usage)
	}
	if *show {
		fmt.Println("stargate-csi", version)
		return
	}
	config.Driver.Version = version
	if err := config.Check(); err != nil || flags.NArg() > 0 {
		if err == nil {
			err = fmt.Errorf("%q is not a flag", flags.Arg(0))
		}
		fmt.Fprintf(os.Stderr, "stargate-csi: %v\n", err)
		os.Exit(usage)
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(*verbose)))
	klog.SetLogger(logger) // for libraries that use the default logger
	ctx, stop := signal.NotifyContext(klog.NewContext(context.Background(), logger), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := app.Run(ctx, config); err != nil {
		logger.Error(err, "The driver has failed")
		os.Exit(1)
	}
}
