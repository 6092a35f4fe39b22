// SPDX-License-Identifier: Apache-2.0

// stargate-hook runs in the pod of a KubeVirt VM. It adds the volumes that the VM names to its
// domain, as memory at their own addresses.
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

	"stargate/csi-driver/internal/grpcserver"
	"stargate/csi-driver/internal/kubevirt/annotation"
	"stargate/csi-driver/internal/kubevirt/domainhook"
	"stargate/csi-driver/internal/kubevirt/domainxml"
	"stargate/csi-driver/internal/kubevirt/hookproto"
)

// The build sets the version.
var version = "unversioned"

const (
	usage = 2
	// KubeVirt's own limit is half a minute or a minute.
	callLimit = 20 * time.Second
)

func main() {
	flags := flag.NewFlagSet("stargate-hook", flag.ContinueOnError)
	driver := flags.String("driver-name", "stargate.csi.dev", "name of the CSI driver, in the annotation's key")
	socket := flags.String("socket", domainhook.Folder, "path of the hook's socket, or of its folder; in a folder, the socket has the driver's name")
	volumes := flags.String("volumes", "", "for tests: folder with the mounted claims, each under its name")
	verbose := flags.Int("v", 2, "log level, 0 to 6")
	show := flags.Bool("version", false, "print the version")
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(usage)
	}
	if *show {
		fmt.Println("stargate-hook", version)
		return
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "stargate-hook: %q is not a flag\n", flags.Arg(0))
		os.Exit(usage)
	}
	folder := annotation.Folder
	if *volumes != "" {
		folder = func(claim string) string { return filepath.Join(*volumes, claim) }
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(*verbose)))
	klog.SetLogger(logger)
	ctx, stop := signal.NotifyContext(klog.NewContext(context.Background(), logger), os.Interrupt, syscall.SIGTERM)
	defer stop()
	h := domainhook.New(domainhook.Config{Driver: *driver, Folder: folder, Host: domainxml.ThisHost()})
	if err := serve(ctx, domainhook.Socket(*socket, *driver), h); err != nil {
		fmt.Fprintf(os.Stderr, "stargate-hook: %v\n", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, socket string, h *domainhook.Hook) error {
	s := grpcserver.New(ctx, grpcserver.Config{
		CallLimit: callLimit, StopLimit: time.Second, Status: domainhook.Status, Show: hookproto.Show,
		Options: []grpc.ServerOption{grpc.ForceServerCodec(hookproto.Codec())},
	}, h.Register)
	l, err := grpcserver.ListenAlone(socket)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("The hook is ready", "socket", socket)
	return s.Serve(ctx, l)
}
