// SPDX-License-Identifier: Apache-2.0

// stargate-keeper runs the FUSE servers of one node, which serve mounts without the kernel module.
// The driver requests the servers.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"stargate/csi-driver/internal/grpcserver"
	"stargate/csi-driver/internal/keeper"
)

// The build sets the version.
var version = "unversioned"

const (
	usage       = 2
	leastMemory = 128 << 20
)

type config struct {
	endpoint, dir, program, memory string
	workers                        int
}

func main() {
	var c config
	flags := flag.NewFlagSet("stargate-keeper", flag.ContinueOnError)
	flags.StringVar(&c.endpoint, "endpoint", "unix:///keeper/keeper.sock", "socket for the driver")
	flags.StringVar(&c.dir, "zone-dir", "", "folder of the volumes")
	flags.StringVar(&c.program, "server", "stargatefs-fuse", "the program of a server")
	flags.StringVar(&c.memory, "server-memory", "512Mi", "limit of the memory that a server allocates for itself; the volume does not count")
	flags.IntVar(&c.workers, "workers", 32, "calls that a server handles at the same time, 2 to 64")
	verbose := flags.Int("v", 2, "log level, 0 to 6")
	check := flags.Bool("check", false, "check whether the keeper at the socket answers, and exit")
	show := flags.Bool("version", false, "print the version")
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(usage)
	}
	if *show {
		fmt.Println("stargate-keeper", version)
		return
	}
	if *check {
		if err := keeper.Check(context.Background(), c.endpoint); err != nil {
			fmt.Fprintln(os.Stderr, "stargate-keeper:", err)
			os.Exit(1)
		}
		return
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(*verbose)))
	k, err := c.keeper(logger)
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("%q is not a flag", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stargate-keeper:", err)
		os.Exit(usage)
	}
	// The servers end with this process. The driver then passes their mounts to the next
	// keeper.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := grpcserver.Listen(c.endpoint)
	if err == nil {
		logger.Info("The keeper is ready", "endpoint", c.endpoint, "folder", c.dir)
		err = k.Serve(ctx, l)
	}
	if err != nil {
		logger.Error(err, "The keeper has failed")
		os.Exit(1)
	}
}

func (c config) keeper(logger klog.Logger) (*keeper.Keeper, error) {
	if !filepath.IsAbs(c.dir) {
		return nil, fmt.Errorf("--zone-dir %q: must be the absolute path of the volumes' folder", c.dir)
	}
	if c.workers < 2 || c.workers > 64 {
		return nil, fmt.Errorf("--workers %d: must be 2 to 64", c.workers)
	}
	memory, err := resource.ParseQuantity(c.memory)
	if err != nil || memory.Value() < leastMemory {
		return nil, fmt.Errorf("--server-memory %q: must be 128Mi or more", c.memory)
	}
	path, err := exec.LookPath(c.program)
	if err != nil {
		return nil, fmt.Errorf("--server %s: %w", c.program, err)
	}
	run := keeper.Program{Path: path, Memory: memory.Value(), Workers: c.workers, Log: logger}.Run
	return keeper.New(keeper.Config{Dir: filepath.Clean(c.dir), Release: version, Run: run}, logger), nil
}
