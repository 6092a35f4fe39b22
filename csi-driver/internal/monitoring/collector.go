// SPDX-License-Identifier: Apache-2.0

// Package monitoring reports the state of driver, zone and volumes to Prometheus and kubelet's
// probes.
package monitoring

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// The collector keeps its results for these times, because a read of all volumes runs programs.
const (
	fresh = 15 * time.Second
	// The time limit of a read. It is shorter than Prometheus's timeout (podMonitor.interval of
	// the chart).
	lookLimit = 20 * time.Second
	// When the zone does not answer, the last result remains valid for this time. A single
	// failed read may come from a busy node.
	stands = 5 * time.Minute
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("stargate_"+name, help, labels, nil)
}

// Zone is the source of the metrics. pool.Zone documents the contract of each method.
type Zone interface {
	Kind() pool.Kind
	Status(ctx context.Context) (pool.Status, error)
	Glances(ctx context.Context) ([]pool.Glance, error)
	Space(ctx context.Context, v pool.Volume) (stargatectl.Space, error)
	Taken(ctx context.Context, v pool.Volume) (int, error)
}

// Collector collects the metrics of the node's zone. It reads the zone at a scrape.
type Collector struct {
	zone   Zone
	module *kernelmodule.Module
	log    klog.Logger
	of     Cluster

	up, zoneSize, zoneFree, zoneLargest, volumes, others    *prometheus.Desc
	orphans, unbound                                        *prometheus.Desc
	size, used, inodes, inodesUsed, systems, whole, growsTo *prometheus.Desc
	shutDown                                                *prometheus.Desc
	shown                                                   []shown

	mu       sync.Mutex
	last     time.Time // time of the last read
	answered time.Time // time of the last successful read
	seen     []prometheus.Metric
}

// shown is a metric from a counter that the module has for each mounted volume.
type shown struct {
	desc       *prometheus.Desc
	kind       prometheus.ValueType
	file, name string
	less       string // name of a counter to subtract; the module has this counter only for members
}

func moduleShows() []shown {
	total := func(name, help, file, counter string) shown {
		return shown{desc("mount_"+name+"_total", help, "volume"), prometheus.CounterValue, file, counter, ""}
	}
	return []shown{
		total("reads", "Reads by this node, by system calls.", "operations", "reads"),
		total("read_bytes", "Bytes that this node has read, by system calls.", "operations", "read_bytes"),
		total("writes", "Writes by this node, by system calls.", "operations", "writes"),
		total("written_bytes", "Bytes that this node has written, by system calls.", "operations", "write_bytes"),
		total("faults", "Faults of this node's mappings.", "operations", "faults"),
		total("commits", "Transactions of this node.", "journal", "commits"),
		total("recoveries", "Transactions of fenced systems that this node has completed.", "journal", "replays"),
		total("lock_waits", "Number of waits for a lock.", "journal", "lock_waits"),
		total("atomic_replaced_bytes", "Bytes that atomic writes of this node have put into fresh pages in place of old ones.", "journal", "atomic_replaced_bytes"),
		total("atomic_logged_bytes", "Bytes that atomic writes of this node have written twice, to a log and in place.", "journal", "atomic_logged_bytes"),
		{desc("mount_epochs_behind", "Epochs that this node has not acknowledged: their deferred frees wait.", "volume"),
			prometheus.GaugeValue, "epoch", "volume", "acknowledged"},
	}
}

// Cluster is the source of the metrics about Kubernetes. cluster.Node documents the contract of
// each method.
type Cluster interface {
	Orphans() map[string]int64
	Unbound() int64
}

// NewCollector returns a Collector for one zone. If the cluster is nil, the metrics about
// Kubernetes are missing.
func NewCollector(z Zone, k *kernelmodule.Module, of Cluster, log klog.Logger) *Collector {
	return &Collector{
		zone: z, module: k, log: log, of: of, shown: moduleShows(),
		shutDown:    desc("mount_shut_down", "1: this node's mount of the volume cannot be used: the node was fenced, or pages are bad.", "volume"),
		up:          desc("zone_up", "1: the node's zone can be read, no device is missing, and the kernel has the file system.", "kind"),
		zoneSize:    desc("zone_size_bytes", "Size of the node's zone."),
		zoneFree:    desc("zone_free_bytes", "Free bytes of the node's zone, in all free ranges."),
		zoneLargest: desc("zone_largest_volume_bytes", "Size of the largest volume that can be created.", "alignment"),
		volumes:     desc("zone_volumes", "Volumes in the zone."),
		others:      desc("zone_strays", "Objects in the zone that the driver's tools have not created."),
		orphans:     desc("zone_orphans", "Volumes of claims and of pods, and snapshots, that Kubernetes will not delete.", "kind"),
		unbound:     desc("claims_unbound", "Claims that do not get the volume that was created for them: Kubernetes refuses the PersistentVolume, or the binding."),
		size:        desc("volume_size_bytes", "Size of a volume.", "volume"),
		used:        desc("volume_used_bytes", "Bytes in use in a volume.", "volume"),
		inodes:      desc("volume_inodes", "Inodes that a volume can have.", "volume"),
		inodesUsed:  desc("volume_inodes_used", "Inodes in use in a volume.", "volume"),
		systems:     desc("volume_systems", "Systems in a volume's mount table.", "volume"),
		whole:       desc("volume_healthy", "0: a volume cannot be used.", "volume", "state"),
		growsTo:     desc("volume_can_grow_to_bytes", "Size to which a volume can grow in its place.", "volume"),
	}
}

// Describe sends the descriptions of all metrics.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.up, c.zoneSize, c.zoneFree, c.zoneLargest, c.volumes, c.others, c.orphans, c.unbound,
		c.size, c.used, c.inodes, c.inodesUsed, c.systems, c.whole, c.growsTo, c.shutDown,
	} {
		ch <- d
	}
	for _, s := range c.shown {
		ch <- s.desc
	}
}

// Collect sends the metrics. It reads the zone, unless the last result is recent.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() || time.Since(c.last) > fresh {
		ctx, cancel := context.WithTimeout(klog.NewContext(context.Background(), c.log), lookLimit)
		defer cancel()
		c.refresh(ctx)
	}
	for _, m := range c.seen {
		ch <- m
	}
}

func gauge(d *prometheus.Desc, v int64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// refresh reads the zone. After a failed read, it keeps the last result for a while.
func (c *Collector) refresh(ctx context.Context) {
	seen, err := c.look(ctx)
	c.last = time.Now()
	if err == nil {
		c.answered = c.last
	}
	if err == nil || time.Since(c.answered) > stands {
		c.seen = seen
	}
}

// look reads the zone. It fails if the zone's existence or content is unknown.
func (c *Collector) look(ctx context.Context) ([]prometheus.Metric, error) {
	kind := string(c.zone.Kind())
	s, err := c.zone.Status(ctx)
	if err != nil {
		c.log.Error(err, "The zone cannot be read")
		down := []prometheus.Metric{gauge(c.up, 0, kind)}
		if errkind.Is(err, errkind.NoZone) {
			return down, nil
		}
		return down, err
	}
	seen := []prometheus.Metric{
		gauge(c.up, truth(!s.Damaged), kind), gauge(c.zoneSize, s.Size), gauge(c.zoneFree, s.Free),
		gauge(c.zoneLargest, s.Largest, "2Mi"), gauge(c.zoneLargest, s.Largest1G, "1Gi"),
		gauge(c.volumes, int64(s.Volumes)), gauge(c.others, int64(s.Others)),
	}
	if c.of != nil {
		for kind, n := range c.of.Orphans() {
			seen = append(seen, gauge(c.orphans, n, kind))
		}
		seen = append(seen, gauge(c.unbound, c.of.Unbound()))
	}
	volumes, err := c.zone.Glances(ctx)
	if err != nil {
		c.log.Error(err, "Volumes cannot be listed")
		return seen, err
	}
	mounts, err := c.module.All()
	if err != nil {
		c.log.Error(err, "The module's files in sysfs cannot be read")
	}
	for _, g := range volumes {
		seen = append(seen, c.volume(ctx, g, mounts)...)
	}
	return seen, ctx.Err() // if the context has ended, the last answers may be missing
}

func (c *Collector) volume(ctx context.Context, g pool.Glance, mounts kernelmodule.Mounts) []prometheus.Metric {
	v := g.Volume
	seen := []prometheus.Metric{
		gauge(c.size, v.Size, v.Name), gauge(c.whole, truth(v.State.Whole()), v.Name, string(v.State)),
	}
	if !v.Readable() {
		return seen
	}
	seen = append(seen, gauge(c.growsTo, v.CanGrowTo, v.Name))
	space, taken := g.Space, g.Taken
	var spaceErr, takenErr error
	if !g.Seen {
		space, spaceErr = c.zone.Space(ctx, v)
		taken, takenErr = c.zone.Taken(ctx, v)
	}
	if spaceErr == nil {
		seen = append(seen, gauge(c.used, space.Used, v.Name), gauge(c.inodes, space.Inodes, v.Name), gauge(c.inodesUsed, space.InodesUsed, v.Name))
	}
	if takenErr == nil {
		seen = append(seen, gauge(c.systems, int64(taken), v.Name))
	}
	return append(seen, c.mount(v, mounts(v.Path))...)
}

// mount sends the module's counters of a volume that this node has mounted.
func (c *Collector) mount(v pool.Volume, m *kernelmodule.Mount) []prometheus.Metric {
	if m == nil {
		return nil
	}
	seen := []prometheus.Metric{gauge(c.shutDown, truth(m.ShutDown()), v.Name)}
	for _, s := range c.shown {
		if s.less != "" && !m.Joined {
			continue
		}
		// The counters are read one after the other, so the difference may be negative.
		n := max(0, m.Counter(s.file, s.name)-m.Counter(s.file, s.less))
		seen = append(seen, prometheus.MustNewConstMetric(s.desc, s.kind, float64(n), v.Name))
	}
	return seen
}
