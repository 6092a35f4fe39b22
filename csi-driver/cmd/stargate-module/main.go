// SPDX-License-Identifier: Apache-2.0

// stargate-module loads the kernel module on a node before the driver starts. If it cannot, it
// reports the reason and exits successfully: a node without the module offers no reserved memory,
// but is not broken.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"

	"stargate/csi-driver/internal/kernelmodule/install"
)

const (
	usage = 2
	// The build may take minutes on a slow node.
	limit = 20 * time.Minute
	told  = time.Minute
)

func main() {
	var c install.Config
	var driver, name string
	flags := flag.NewFlagSet("stargate-module", flag.ContinueOnError)
	flags.StringVar(&c.Host, "host", "/host", "the node's root")
	flags.StringVar(&c.Sources, "sources", "", "folder of the module's sources (default: the image's)")
	flags.StringVar(&c.Prebuilt, "prebuilt", "/usr/lib/stargate/modules", "folder of prebuilt modules, RELEASE/stargatefs.ko; not used if empty")
	flags.StringVar(&c.Release, "kernel", "", "release of the kernel; if empty, that of the running kernel")
	flags.BoolVar(&c.Build, "build", true, "make the node's DKMS build the module if none exists")
	flags.StringVar(&driver, "driver-name", "stargate.csi.dev", "name of the CSI driver")
	flags.StringVar(&name, "node", "", "name of the Node that gets the result as an annotation and an Event; if empty, no Node")
	if err := flags.Parse(os.Args[1:]); err != nil || flags.NArg() > 0 {
		if err == nil {
			fmt.Fprintf(os.Stderr, "stargate-module: %q is not a flag\n", flags.Arg(0))
		}
		os.Exit(usage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx = klog.NewContext(ctx, textlogger.NewLogger(textlogger.NewConfig()))
	if err := complete(&c); err != nil {
		fmt.Fprintln(os.Stderr, "stargate-module:", err)
		os.Exit(1)
	}
	within, cancel := context.WithTimeout(ctx, limit)
	r := install.Ensure(within, c, install.Chroot{Dir: c.Host})
	cancel()
	fmt.Println(r)
	if name == "" {
		return
	}
	within, cancel = context.WithTimeout(ctx, told)
	defer cancel()
	if err := tell(within, driver, name, r); err != nil {
		klog.FromContext(ctx).Error(err, "The Node's annotation and Event cannot be written")
	}
}

// complete fills in the values that no flag has set.
func complete(c *install.Config) error {
	if c.Release == "" {
		var u unix.Utsname
		if err := unix.Uname(&u); err != nil {
			return fmt.Errorf("uname: %w", err)
		}
		c.Release = unix.ByteSliceToString(u.Release[:])
	}
	if c.Sources == "" {
		found, err := filepath.Glob("/usr/src/" + install.Name + "-*")
		if err != nil || len(found) != 1 {
			return fmt.Errorf("/usr/src has %d folders of sources: choose one with --sources", len(found))
		}
		c.Sources = found[0]
	}
	return nil
}

func tell(ctx context.Context, driver, name string, r install.Result) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return install.Tell(ctx, client, clock.RealClock{}, driver, name, r)
}
