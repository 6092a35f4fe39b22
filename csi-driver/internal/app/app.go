// SPDX-License-Identifier: Apache-2.0

package app

import (
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
	"stargate/csi-driver/internal/csi/driver"
	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/dataset"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/grpcserver"
	"stargate/csi-driver/internal/keeper"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/kubevirt/hookproto"
	"stargate/csi-driver/internal/kubevirt/nodehook"
	"stargate/csi-driver/internal/monitoring"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/outside"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/pool/dax"
	"stargate/csi-driver/internal/pool/file"
	"stargate/csi-driver/internal/publish"
	"stargate/csi-driver/internal/registrar"
	"stargate/csi-driver/internal/stargatectl"
)

// Run starts the driver, which serves until ctx is done.
func Run(ctx context.Context, c Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	folder, err := mounts.OpenFolder(c.KubeletDir)
	if err != nil {
		return err
	}
	m := mounts.New()
	var servers *keeper.Client
	if c.byFUSE() {
		servers = keeper.NewClient(c.Keeper, klog.FromContext(ctx))
	}
	z, show, end, err := openZone(ctx, c, m, servers)
	if err != nil {
		return err
	}
	defer end()
	c.Driver.SnapshotFolder = c.SnapshotDir != ""
	k := kernelmodule.New(kernelmodule.Sysfs)
	if c.Sysfs != "" {
		k = kernelmodule.NewFor(c.Sysfs, func(file string) string { return file })
	}
	p := parts{
		driver: driver.New(c.Driver, z, show, k, folder), zone: z, module: k, servers: servers,
		hooks: nodehook.New(nodehook.Config{Driver: c.Driver.Name, Node: c.Driver.NodeID, Pods: filepath.Join(c.KubeletDir, "pods"), Notes: c.notes()}, z, show),
	}
	if c.Machines {
		is, err := cluster.ConnectMachines(c.Driver.Name)
		if err != nil {
			return err
		}
		p.driver.ServeMachines(is)
	}
	if c.Cluster {
		var end func()
		if p.node, end, err = cluster.Connect(ctx, c.Driver.Name, c.Driver.NodeID, c.Contents); err != nil {
			return err
		}
		defer end()
		p.node.LookForOrphans(c.OrphanLimit)
		p.node.LookAtMounts(k.All)
		p.node.LookAtPaths(show.ShownAll)
		p.driver.AskCluster(p.node)
	}
	var objects dataset.Cluster
	if p.node != nil {
		objects = p.node.Datasets()
	}
	if p.datasets, err = openDatasets(c, z, show, objects); err != nil {
		return err
	}
	if p.datasets != nil {
		p.driver.ServeDatasets(p.datasets)
	}
	at, err := listen(c)
	if err != nil {
		return err
	}
	defer at.close()
	return serve(ctx, c, at, p)
}

// parts has the components that serve calls or report to the cluster.
type parts struct {
	driver *driver.Driver
	zone   pool.Zone
	module *kernelmodule.Module
	hooks  *nodehook.Hooks
	// servers runs the servers of mounts by FUSE; nil without such mounts.
	servers *keeper.Client
	node    *cluster.Node // nil if the driver does not report to the cluster
	// datasets has the node's copies of data sets; nil: none.
	datasets *dataset.Manager
}

// serve starts all services. It fails early unless all of them can serve, so that kubelet and
// probes never see an incomplete driver.
func serve(ctx context.Context, c Config, at *sockets, p parts) error {
	own, err := grpc.NewClient("unix://"+strings.TrimPrefix(c.Endpoint, "unix://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("own socket: %w", err)
	}
	defer own.Close()
	calls := metrics.NewCSIMetricsManagerForPlugin(c.Driver.Name)
	g, ctx := errgroup.WithContext(ctx)
	csiServer := grpcserver.New(ctx, grpcserver.Config{
		CallLimit: c.CallLimit, StopLimit: c.StopLimit, Record: calls.RecordMetrics, Status: grpcstatus.Of, Context: c.Call,
	}, p.driver.Register)
	g.Go(func() error { return csiServer.Serve(ctx, at.csi) })
	if at.web != nil {
		serveHTTP(ctx, g, at.web, own, p, calls)
	}
	if p.node != nil {
		g.Go(func() error { p.node.Run(ctx, p.zone); return nil })
		g.Go(func() error { p.node.PlaceCopies(ctx); return nil })
	}
	if at.hooks != nil {
		s := grpcserver.New(ctx, grpcserver.Config{
			CallLimit: time.Minute, StopLimit: time.Second, Status: grpcstatus.Of, Show: hookproto.Show,
			Options: []grpc.ServerOption{grpc.ForceServerCodec(hookproto.Codec())},
		}, p.hooks.Register)
		g.Go(func() error { return s.Serve(ctx, at.hooks) })
	}
	if at.registration != nil {
		serveRegistration(ctx, g, at.registration, c)
	}
	if p.servers != nil {
		g.Go(func() error { p.servers.Run(ctx); return nil })
	}
	if p.datasets != nil {
		g.Go(func() error { p.datasets.Run(ctx); return nil })
	}
	g.Go(func() error { report(ctx, p.zone); return nil })
	g.Go(func() error { sweep(ctx, p.zone, sweepEvery, c.CallLimit); return nil })
	klog.FromContext(ctx).Info("The driver is ready", "driver", c.Driver.Name, "node", c.Driver.NodeID, "zone", p.zone.Kind(), "endpoint", c.Endpoint)
	return g.Wait()
}

// openZone opens a zone of the configured kind, and returns the presenter of its volumes, too.
func openZone(ctx context.Context, c Config, m *mounts.Mounter, servers *keeper.Client) (pool.Zone, publish.Presenter, func(), error) {
	if pool.Kind(c.ZoneKind) == pool.None {
		return pool.Nothing{}, publish.NewDAX(m, c.File.Group, c.Machines), func() {}, nil
	}
	t, err := stargatectl.New(c.ToolsDir)
	if err != nil {
		return nil, nil, nil, err
	}
	if c.SnapshotDir == "" {
		return openZoneWith(ctx, c, m, servers, t)
	}
	f, err := outside.Open(ctx, c.SnapshotDir, c.Driver.NodeID)
	if err != nil {
		return nil, nil, nil, err
	}
	z, show, end, err := openZoneWith(ctx, c, m, servers, f.Tools(t))
	if err != nil {
		f.Close()
		return nil, nil, nil, err
	}
	return f.Beside(z), show, func() { end(); f.Close() }, nil
}

func openZoneWith(
	ctx context.Context, c Config, m *mounts.Mounter, servers *keeper.Client, t *stargatectl.Tools,
) (pool.Zone, publish.Presenter, func(), error) {
	if pool.Kind(c.ZoneKind) == pool.DAX {
		z, err := dax.New(c.ZoneName, t, publish.Mountable)
		return z, publish.NewDAX(m, c.File.Group, c.Machines), func() {}, err
	}
	c.File.Node = c.Driver.NodeID
	z, err := file.Open(ctx, c.File, t)
	if err != nil {
		return nil, nil, nil, err
	}
	if servers != nil {
		return z, publish.NewServedFile(m, z, c.File.Group, servers, keeper.Device), func() { z.Close() }, nil
	}
	return z, publish.NewFile(m, z), func() { z.Close() }, nil
}

// reportLimit is the time limit of a read of the zone for which no caller waits.
const reportLimit = 2 * time.Minute

// reported returns the content of a zone, for the log.
type reported interface {
	Kind() pool.Kind
	Status(ctx context.Context) (pool.Status, error)
	List(ctx context.Context) ([]pool.Volume, error)
	Strays(ctx context.Context) ([]string, error)
}

// report logs the content of the zone. It runs while the driver serves calls, because the driver
// does not wait for a zone that does not answer. The log names unknown objects; the driver does not
// change them.
func report(ctx context.Context, z reported) {
	ctx, cancel := context.WithTimeout(ctx, reportLimit)
	defer cancel()
	logger := klog.FromContext(ctx)
	s, err := z.Status(ctx)
	if err != nil {
		logger.Error(err, "The zone cannot be read: this node has no room for volumes")
		return
	}
	logger.Info("Zone", "kind", z.Kind(), "name", s.Name, "size", s.Size, "free", s.Free, "largestVolume", s.Largest, "volumes", s.Volumes)
	if strays, err := z.Strays(ctx); err != nil {
		logger.Error(err, "Strays cannot be listed")
	} else if len(strays) > 0 {
		logger.Info("The zone has objects that the driver has not created; it does not change them", "strays", strays)
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

// sweepEvery limits the time that memory remains lost after a crash during an allocation or a
// release.
const sweepEvery = 10 * time.Minute

// sweeper removes incomplete objects that killed calls have left.
type sweeper interface {
	Sweep(ctx context.Context) error
}

// sweep removes incomplete objects while the driver serves calls. The next change of the zone would
// also remove them, but there may be no further change. Incomplete objects reduce the capacity, so
// that the scheduler sends no claims.
func sweep(ctx context.Context, z sweeper, every, limit time.Duration) {
	for {
		within, cancel := context.WithTimeout(stargatectl.Changing(ctx), limit)
		err := z.Sweep(within)
		cancel()
		if err != nil && ctx.Err() == nil && !errkind.Is(err, errkind.NoZone) {
			klog.FromContext(ctx).Error(err, "Files of interrupted calls cannot be removed")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// serveHTTP serves metrics and probes. The driver is alive if its own socket answers.
func serveHTTP(ctx context.Context, g *errgroup.Group, l net.Listener, conn *grpc.ClientConn, p parts, calls metrics.CSIMetricsManager) {
	own := prometheus.NewRegistry()
	var of monitoring.Cluster
	if p.node != nil {
		of = p.node
	}
	own.MustRegister(
		monitoring.NewCollector(p.zone, p.module, of, klog.FromContext(ctx)),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	if p.servers != nil {
		own.MustRegister(monitoring.NewServers(p.servers.Status))
	}
	if p.datasets != nil {
		own.MustRegister(monitoring.NewDatasets(p.datasets.States))
	}
	alive := func(ctx context.Context) error {
		_, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
		return err
	}
	ready := func(ctx context.Context) error {
		_, err := p.zone.Status(ctx)
		return err
	}
	g.Go(func() error {
		return monitoring.Serve(ctx, l, monitoring.Handler(prometheus.Gatherers{own, calls.GetRegistry()}, alive, ready))
	})
}

func serveRegistration(ctx context.Context, g *errgroup.Group, l net.Listener, c Config) {
	refused := make(chan string, 1)
	r := registrar.NewRegistrar(c.Driver.Name, c.KubeletEndpoint, func(reason string) {
		select {
		case refused <- reason:
		default:
		}
	})
	s := grpcserver.New(ctx, grpcserver.Config{
		CallLimit: time.Minute, StopLimit: time.Second, Status: grpcstatus.Of,
	}, func(s grpc.ServiceRegistrar) { registration.RegisterRegistrationServer(s, r) })
	g.Go(func() error { return s.Serve(ctx, l) })
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case reason := <-refused:
			return fmt.Errorf("kubelet refuses the driver: %s", reason)
		}
	})
}
