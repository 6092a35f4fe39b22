// SPDX-License-Identifier: Apache-2.0

// stargate-webhook answers the API server about VMs of KubeVirt that name volumes.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"stargate/csi-driver/internal/kubevirt/webhook"
	"stargate/csi-driver/internal/monitoring"
)

// The build sets the version.
var version = "unversioned"

const usage = 2

// watchEvery is the time between the log's warnings about a certificate that ends soon.
const watchEvery = 24 * time.Hour

type config struct {
	admission  webhook.Config
	driver     string
	listen     string
	http       string
	folder     string
	kubeconfig string
}

func (c *config) flags(fs *flag.FlagSet) {
	fs.StringVar(&c.driver, "driver-name", "stargate.csi.dev", "name of the CSI driver")
	fs.StringVar(&c.listen, "listen", ":9443", "address of the webhook (HTTPS)")
	fs.StringVar(&c.http, "http", "", "address of /metrics, /healthz and /readyz (HTTP); none if empty")
	fs.StringVar(&c.admission.API, "api", webhook.Sidecar, "sidecar: hook sidecars of KubeVirt; plugin: its Plugin objects (1.9)")
	fs.StringVar(&c.admission.Image, "hook-image", "", "image with stargate-hook")
	fs.StringVar(&c.admission.PullPolicy, "hook-pull-policy", "IfNotPresent", "pull policy of that image")
	fs.StringVar(&c.admission.PluginName, "plugin", "", "name of the Plugin object (plugin)")
	fs.BoolVar(&c.admission.ZoneOfFiles, "zone-of-files", false, "volumes are files in memory, and the kernel charges their memory to the launchers' pods")
	fs.StringVar(&c.folder, "certificates", "", "folder with tls.crt and tls.key, which may be replaced at any time")
	fs.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; if empty, the pod's service account")
}

func (c *config) check() error {
	switch {
	case c.admission.API != webhook.Sidecar && c.admission.API != webhook.Plugin:
		return fmt.Errorf("--api %q: must be sidecar or plugin", c.admission.API)
	case c.admission.Image == "":
		return fmt.Errorf("--hook-image is missing: the image with stargate-hook")
	case c.admission.API == webhook.Plugin && c.admission.PluginName == "":
		return fmt.Errorf("--api plugin needs --plugin")
	case c.folder == "":
		return fmt.Errorf("--certificates is missing: the folder with tls.crt and tls.key")
	}
	return nil
}

func main() {
	var c config
	flags := flag.NewFlagSet("stargate-webhook", flag.ContinueOnError)
	c.flags(flags)
	verbose := flags.Int("v", 2, "log level, 0 to 6")
	show := flags.Bool("version", false, "print the version")
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(usage)
	}
	if *show {
		fmt.Println("stargate-webhook", version)
		return
	}
	if err := c.check(); err != nil || flags.NArg() > 0 {
		if err == nil {
			err = fmt.Errorf("%q is not a flag", flags.Arg(0))
		}
		fmt.Fprintf(os.Stderr, "stargate-webhook: %v\n", err)
		os.Exit(usage)
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(*verbose)))
	klog.SetLogger(logger)
	ctx, stop := signal.NotifyContext(klog.NewContext(context.Background(), logger), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &c); err != nil {
		fmt.Fprintf(os.Stderr, "stargate-webhook: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c *config) error {
	rest, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	cluster, err := webhook.Connect(rest, c.driver)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	r, folder := webhook.New(c.admission, cluster), webhook.Folder{Dir: c.folder}
	g, ctx := errgroup.WithContext(ctx)
	if c.http != "" {
		if err := serveHTTP(ctx, g, c.http, r, folder); err != nil {
			return err
		}
	}
	g.Go(func() error { return webhook.Serve(ctx, l, r.Handler(ctx), folder) })
	g.Go(func() error { folder.Watch(ctx, watchEvery); return nil })
	klog.FromContext(ctx).Info("The webhook is ready", "address", l.Addr(), "api", c.admission.API, "driver", c.driver)
	return g.Wait()
}

// serveHTTP serves probes and metrics at a separate port. The pod is ready when it can read its
// certificate.
func serveHTTP(ctx context.Context, g *errgroup.Group, address string, r *webhook.Reviewer, folder webhook.Folder) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	own := prometheus.NewRegistry()
	own.MustRegister(r.Metrics(folder, klog.FromContext(ctx))...)
	own.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	alive := func(context.Context) error { return nil }
	ready := func(context.Context) error {
		_, err := folder.Certificate()
		return err
	}
	g.Go(func() error { return monitoring.Serve(ctx, l, monitoring.Handler(own, alive, ready)) })
	return nil
}
