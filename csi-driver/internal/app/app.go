// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"stargate/csi-driver/internal/cluster"
	"stargate/csi-driver/internal/daxzone"
	"stargate/csi-driver/internal/driver"
	"stargate/csi-driver/internal/filezone"
	"stargate/csi-driver/internal/kubelet"
	"stargate/csi-driver/internal/module"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/observe"
	"stargate/csi-driver/internal/present"
	"stargate/csi-driver/internal/server"
	"stargate/csi-driver/internal/tools"
	"stargate/csi-driver/internal/zone"
)

// Run serves until ctx is done.
func Run(ctx context.Context, c Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	folder, err := mounts.OpenFolder(c.KubeletDir)
	if err != nil {
		return err
	}
	m := mounts.New()
	z, show, end, err := openZone(ctx, c, m)
	if err != nil {
		return err
	}
	defer end()
	report(ctx, z)
	calls := metrics.NewCSIMetricsManagerForPlugin(c.Driver.Name)
	k := module.New(cmp.Or(c.Sysfs, module.Sysfs))
	d := driver.New(c.Driver, z, show, m, k, folder)
	g, ctx := errgroup.WithContext(ctx)
	csiServer := server.New(ctx, server.Config{
		CallLimit: c.CallLimit, StopLimit: c.StopLimit, Record: calls.RecordMetrics, Status: driver.Status, Context: c.Call,
	}, func(s grpc.ServiceRegistrar) {
		csi.RegisterIdentityServer(s, d)
		csi.RegisterControllerServer(s, d)
		csi.RegisterNodeServer(s, d)
	})
	var web net.Listener // first: who finds that we answer may ask for metrics next
	if c.HTTP != "" {
		if web, err = net.Listen("tcp", c.HTTP); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		defer web.Close()
	}
	l, err := server.Listen(c.Endpoint)
	if err != nil {
		return err
	}
	g.Go(func() error { return csiServer.Serve(ctx, l) })
	if web != nil {
		if err := serveHTTP(ctx, g, web, c, z, k, calls); err != nil {
			return err
		}
	}
	if c.Cluster {
		node, end, err := cluster.Connect(ctx, c.Driver.Name, c.Driver.NodeID)
		if err != nil {
			return err
		}
		defer end()
		g.Go(func() error { node.Run(ctx, z); return nil })
	}
	if c.Registration != "" {
		if err := serveRegistration(ctx, g, c); err != nil {
			return err
		}
	}
	klog.FromContext(ctx).Info("The driver is ready", "driver", c.Driver.Name, "node", c.Driver.NodeID, "zone", z.Kind(), "endpoint", c.Endpoint)
	return g.Wait()
}

// openZone has the zone of the kind that the operator has chosen, and its way of being shown.
func openZone(ctx context.Context, c Config, m *mounts.Mounter) (zone.Zone, present.Presenter, func(), error) {
	nothing := func() {}
	if zone.Kind(c.ZoneKind) == zone.None {
		return zone.Nothing{}, present.NewDAX(m, c.File.Group), nothing, nil
	}
	t, err := tools.New(c.ToolsDir)
	if err != nil {
		return nil, nil, nil, err
	}
	if zone.Kind(c.ZoneKind) == zone.DAX {
		z, err := daxzone.New(c.ZoneName, t)
		return z, present.NewDAX(m, c.File.Group), nothing, err
	}
	z, err := filezone.Open(ctx, c.File, t)
	if err != nil {
		return nil, nil, nil, err
	}
	return z, present.NewFile(m, z), func() { z.Close() }, nil
}

// report logs what there is. What nobody knows is named and left alone.
func report(ctx context.Context, z zone.Zone) {
	logger := klog.FromContext(ctx)
	s, err := z.Status(ctx)
	if err != nil {
		logger.Error(err, "This node offers nothing: its zone cannot be read")
		return
	}
	logger.Info("Zone", "kind", z.Kind(), "name", s.Name, "size", s.Size, "free", s.Free, "largestVolume", s.Largest, "volumes", s.Volumes)
	if strays, err := z.Strays(ctx); err != nil {
		logger.Error(err, "Strays cannot be listed")
	} else if len(strays) > 0 {
		logger.Info("There is something in the zone that is not the driver's; it is left alone", "strays", strays)
	}
	volumes, err := z.List(ctx)
	if err != nil {
		logger.Error(err, "Volumes cannot be listed")
	}
	for _, v := range volumes {
		if !v.State.Whole() {
			logger.Info("A volume cannot be used", "volume", v.Name, "state", v.State, "why", v.Why)
		}
	}
}

// serveHTTP also asks our own socket: that it answers is what alive means.
func serveHTTP(ctx context.Context, g *errgroup.Group, l net.Listener, c Config, z zone.Zone, k *module.Module, calls metrics.CSIMetricsManager) error {
	own := prometheus.NewRegistry()
	own.MustRegister(
		observe.NewCollector(z, k, klog.FromContext(ctx)),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	conn, err := grpc.NewClient("unix://"+strings.TrimPrefix(c.Endpoint, "unix://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("own socket: %w", err)
	}
	alive := func(ctx context.Context) error {
		_, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
		return err
	}
	ready := func(ctx context.Context) error {
		_, err := z.Status(ctx)
		return err
	}
	g.Go(func() error {
		defer conn.Close()
		return observe.Serve(ctx, l, observe.Handler(prometheus.Gatherers{own, calls.GetRegistry()}, alive, ready))
	})
	return nil
}

func serveRegistration(ctx context.Context, g *errgroup.Group, c Config) error {
	refused := make(chan string, 1)
	r := kubelet.NewRegistrar(c.Driver.Name, c.KubeletEndpoint, func(reason string) {
		select {
		case refused <- reason:
		default:
		}
	})
	s := server.New(ctx, server.Config{
		CallLimit: time.Minute, StopLimit: time.Second, Status: driver.Status,
	}, func(s grpc.ServiceRegistrar) { registration.RegisterRegistrationServer(s, r) })
	l, err := server.Listen(filepath.Join(c.Registration, c.Driver.Name+"-reg.sock"))
	if err != nil {
		return err
	}
	g.Go(func() error { return s.Serve(ctx, l) })
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case reason := <-refused:
			return fmt.Errorf("kubelet refuses the driver: %s", reason)
		}
	})
	return nil
}
