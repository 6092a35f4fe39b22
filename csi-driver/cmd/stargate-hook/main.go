// SPDX-License-Identifier: Apache-2.0

// stargate-hook stands beside a virtual machine of KubeVirt and gives it the volumes that it names, as
// memory at their own addresses.
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

	"google.golang.org/grpc"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"stargate/csi-driver/internal/kubevirt/claims"
	"stargate/csi-driver/internal/kubevirt/domain"
	"stargate/csi-driver/internal/kubevirt/hook"
	"stargate/csi-driver/internal/kubevirt/wire"
	"stargate/csi-driver/internal/server"
)

// Set when it is built.
var version = "unversioned"

const (
	usage = 2
	// KubeVirt itself waits for half a minute or a minute.
	callLimit = 20 * time.Second
)

func main() {
	flags := flag.NewFlagSet("stargate-hook", flag.ContinueOnError)
	driver := flags.String("driver-name", "stargate.csi.dev", "name of the CSI driver, in the annotation's key")
	socket := flags.String("socket", hook.Folder, "where KubeVirt looks for it; in a folder, by the driver's name")
	volumes := flags.String("volumes", "", "for tests: folder in which the claims are mounted, each by its name")
	verbose := flags.Int("v", 2, "how much is logged, 0 to 6")
	show := flags.Bool("version", false, "say which version this is")
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(usage)
	}
	if *show {
		fmt.Println("stargate-hook", version)
		return
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "stargate-hook: %q is no flag\n", flags.Arg(0))
		os.Exit(usage)
	}
	folder := claims.Folder
	if *volumes != "" {
		folder = func(claim string) string { return filepath.Join(*volumes, claim) }
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(*verbose)))
	klog.SetLogger(logger)
	ctx, stop := signal.NotifyContext(klog.NewContext(context.Background(), logger), os.Interrupt, syscall.SIGTERM)
	defer stop()
	h := hook.New(hook.Config{Driver: *driver, Folder: folder, Host: domain.ThisHost()})
	if err := serve(ctx, hook.Socket(*socket, *driver), h); err != nil {
		fmt.Fprintf(os.Stderr, "stargate-hook: %v\n", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, socket string, h *hook.Hook) error {
	s := server.New(ctx, server.Config{
		CallLimit: callLimit, StopLimit: time.Second, Status: hook.Status, Show: wire.Show,
		Options: []grpc.ServerOption{grpc.ForceServerCodec(wire.Codec())},
	}, h.Register)
	l, err := server.ListenAlone(socket)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("The hook is ready", "socket", socket)
	return s.Serve(ctx, l)
}
