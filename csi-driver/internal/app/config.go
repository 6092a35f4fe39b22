// SPDX-License-Identifier: Apache-2.0

// Package app builds the driver from the operator's configuration.
package app

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"stargate/csi-driver/internal/cluster"
	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/dataset"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/pool/file"
)

// Config is the operator's configuration.
type Config struct {
	Driver   request.Config
	Endpoint string
	// Registration is the folder in which kubelet searches for sockets. KubeletEndpoint is the
	// path of Endpoint for kubelet. Without the folder, the driver does not register.
	Registration    string
	KubeletEndpoint string
	KubeletDir      string
	HTTP            string
	// NodeHooks is the socket of KubeVirt's node hooks.
	NodeHooks string
	ToolsDir  string
	ZoneKind  string
	ZoneName  string
	File      file.Config
	// Mount is the way in which pods get volumes: one of the constants Mount... below.
	Mount string
	// Keeper is the socket of the keeper of mounts by FUSE.
	Keeper string
	// SnapshotDir is a folder outside of the zone. Without it, all snapshots are in the zone.
	SnapshotDir string
	Cluster     bool
	Contents    bool
	// Machines gives pods of KubeVirt's VMs access to the volumes' memory.
	Machines bool
	// OrphanLimit is the time that a volume may be without a PersistentVolume
	// (cluster.OrphanLimit).
	OrphanLimit time.Duration
	// Datasets has the limits for copies of data sets. Catalog replaces the cluster's objects
	// in tests.
	Datasets  datasets
	Catalog   dataset.Cluster `json:"-"`
	CallLimit time.Duration
	StopLimit time.Duration
	// Sysfs replaces module.Sysfs in tests. Paths of volumes' files replace the numbers of
	// their devices.
	Sysfs string
	// Call wraps the context of each call in tests.
	Call func(context.Context) context.Context `json:"-"`
}

// datasets has the operator's limits for copies of data sets.
type datasets struct {
	Enabled                   bool
	Hosts                     []string
	NodeQuota, NamespaceQuota int64
	Grace, Wait               time.Duration
	Period                    time.Duration // dataset.Config.Period, in tests
}

// Ways in which pods get volumes. MountAuto chooses the way by the kind of the zone.
const (
	MountAuto   = "auto"
	MountModule = "module"
	MountFUSE   = "fuse"
	MountNone   = "none"
)

var (
	driverName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	nodeName   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?$`)
)

// bytes is the type of a flag's value like 16Gi.
type bytes struct{ n *int64 }

func (b bytes) String() string {
	if b.n == nil {
		return ""
	}
	return resource.NewQuantity(*b.n, resource.BinarySI).String()
}

func (b bytes) Set(s string) error {
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return fmt.Errorf("%q: %w", s, err)
	}
	n := q.Value() // rounded up, because AsInt64 fails for 127Ti
	if n <= 0 || q.CmpInt64(n) != 0 {
		return fmt.Errorf("%q: must be a number of bytes, like 16Gi", s)
	}
	*b.n = n
	return nil
}

// pairs is the type of a flag with names and values.
type pairs struct{ of *map[string]string }

func (p pairs) String() string {
	if p.of == nil {
		return ""
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*p.of)) {
		all = append(all, name+"="+(*p.of)[name])
	}
	return strings.Join(all, ",")
}

func (p pairs) Set(s string) error {
	*p.of = map[string]string{}
	for _, pair := range strings.Split(s, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q: NAME=VALUE", pair)
		}
		(*p.of)[name] = value
	}
	return nil
}

// notes returns the path of a file next to the socket, in a folder of the node that only the driver
// uses.
func (c *Config) notes() string {
	if c.NodeHooks == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(strings.TrimPrefix(c.Endpoint, "unix://")), "machines.json")
}

// Flags registers the config's flags, with their defaults.
func (c *Config) Flags(fs *flag.FlagSet) {
	c.Driver.DefaultSize = pool.Gigabyte
	c.File.Base = 64 << 30
	fs.StringVar(&c.Driver.Name, "driver-name", "stargate.csi.dev", "name of the CSI driver")
	fs.StringVar(&c.Driver.NodeID, "node", "", "name of this node")
	fs.Var(bytes{&c.Driver.DefaultSize}, "default-size", "size of a volume without a requested size")
	fs.BoolVar(&c.Driver.AllowHostSplice, "allow-host-splice", false, "allow this node's kernel to follow file tables that VMs write")
	fs.BoolVar(&c.Driver.AllowSuidDev, "allow-suid-dev", false, "allow the mount options suid and dev in a StorageClass; otherwise the driver mounts volumes with nosuid and nodev")
	fs.Var(pairs{&c.Driver.Inline}, "inline-parameters", "hostMode, lease and rootOwner of inline volumes, like rootOwner=1000:107,lease=30; a pod's author cannot set them")
	fs.BoolVar(&c.Driver.ControllerExpand, "controller-expand", false, "serve ControllerExpandVolume; only if its calls reach the volume's node")
	fs.StringVar(&c.Endpoint, "endpoint", "unix:///csi/csi.sock", "socket of the CSI services")
	fs.StringVar(&c.Registration, "registration-dir", "", "kubelet's folder for sockets of plugins (usually /registration)")
	fs.StringVar(&c.KubeletEndpoint, "kubelet-endpoint", "", "path at which kubelet sees the socket of the CSI services")
	fs.StringVar(&c.KubeletDir, "kubelet-dir", "/var/lib/kubelet", "kubelet's folder, which must contain the paths of requests")
	fs.StringVar(&c.HTTP, "http", "", "address of /metrics, /healthz and /readyz; none if empty")
	fs.StringVar(&c.NodeHooks, "node-hooks", "", "socket of KubeVirt's node hooks (1.9); none if empty")
	fs.StringVar(&c.ToolsDir, "tools", "", "folder of stargatectl and mkfs.stargatefs; from PATH if empty")
	fs.StringVar(&c.ZoneKind, "zone-kind", "dax", "dax: reserved memory; file: files on a file system in memory; none")
	fs.StringVar(&c.Mount, "mount", MountAuto, "how pods get a volume: module (dax), fuse (file; with --keeper), none (file: as memory of VMs only); auto: the way that the zone allows")
	fs.StringVar(&c.Keeper, "keeper", "", "socket of the keeper of mounts by FUSE (stargate-keeper)")
	fs.StringVar(&c.ZoneName, "zone", "stargate", "name of the zone (dax)")
	fs.StringVar(&c.File.Dir, "zone-dir", "", "folder of the volumes (file)")
	fs.Var(bytes{&c.File.Base}, "zone-base", "guest-physical address at which the volumes begin (file)")
	fs.Var(bytes{&c.File.Size}, "zone-size", "total size of the volumes (file)")
	fs.IntVar(&c.File.Group, "zone-group", 107, "group that may map volumes as memory of VMs: the group of QEMU")
	fs.Func("gone-zone", "identity of a zone whose memory is lost, so that its volumes count as deleted; repeatable", func(s string) error {
		if id, ok := pool.ParseID("v@" + s); !ok || id.Zone == "" {
			return fmt.Errorf("%q: must be 16 hexadecimal digits, as in the message of a refused deletion", s)
		}
		c.Driver.GoneZones = append(c.Driver.GoneZones, s)
		return nil
	})
	fs.StringVar(&c.SnapshotDir, "snapshot-dir", "", "folder for snapshots outside of the zone (snapshotTarget); none if empty")
	fs.BoolVar(&c.Cluster, "cluster", false, "label this node in Kubernetes, remove its start-up taint, publish Events")
	fs.BoolVar(&c.Contents, "claim-contents", false, "label VolumeSnapshotContents that a user wrote, if the snapshot is in this node's zone, because the snapshotter needs the label; with --cluster")
	fs.BoolVar(&c.Machines, "machines", false, "give pods of KubeVirt's VMs access to the memory of the volumes that they name; requires the webhook, which admits such pods only from KubeVirt")
	fs.DurationVar(&c.OrphanLimit, "orphan-limit", cluster.OrphanLimit, "time after which the driver reports a volume or snapshot that Kubernetes will not delete; with --cluster")
	fs.BoolVar(&c.Driver.NoInline, "no-inline-volumes", false, "refuse volumes that a pod's manifest defines, except those of data sets")
	fs.BoolVar(&c.Datasets.Enabled, "datasets", false, "keep copies of data sets (StargateDataset) for pods; with --cluster")
	fs.Func("dataset-host", "host from which data sets may come, like models.example or *.models.example; repeatable; without it, each host whose address is not local", func(s string) error {
		c.Datasets.Hosts = append(c.Datasets.Hosts, s)
		return nil
	})
	fs.Var(bytes{&c.Datasets.NodeQuota}, "dataset-quota", "memory that all copies of data sets may take on this node; no limit if it is not given")
	fs.Var(bytes{&c.Datasets.NamespaceQuota}, "dataset-namespace-quota", "memory that copies of the data sets of one namespace may take on this node; no limit if it is not given")
	fs.DurationVar(&c.Datasets.Grace, "dataset-grace", 10*time.Minute, "time that a copy of a data set without pods is kept")
	fs.DurationVar(&c.Datasets.Wait, "dataset-wait", time.Minute, "time that kubelet's call waits for a copy that is being filled; kubelet waits two minutes for a call")
	fs.DurationVar(&c.CallLimit, "call-limit", time.Hour, "time limit of a call that changes something, even after its caller has ended; a call that only reads ends with its caller")
	fs.DurationVar(&c.StopLimit, "stop-limit", 20*time.Second, "time that calls in progress have to end when the driver is stopped")
}

// Check checks the parts of the configuration that do not depend on the node.
func (c *Config) Check() error {
	switch {
	case !driverName.MatchString(c.Driver.Name):
		return fmt.Errorf("--driver-name %q: must be up to 63 lower-case letters, digits, dots and dashes", c.Driver.Name)
	case !nodeName.MatchString(c.Driver.NodeID):
		return fmt.Errorf("--node %q: must be the name of this node", c.Driver.NodeID)
	case c.Driver.DefaultSize < pool.MinVolume || c.Driver.DefaultSize > pool.MaxVolume:
		return fmt.Errorf("--default-size %d: 16Mi to 64Ti", c.Driver.DefaultSize)
	case c.Registration != "" && c.KubeletEndpoint == "":
		return fmt.Errorf("--registration-dir needs --kubelet-endpoint")
	case c.Contents && !c.Cluster:
		return fmt.Errorf("--claim-contents needs --cluster")
	case c.CallLimit <= 0 || c.StopLimit <= 0:
		return fmt.Errorf("--call-limit and --stop-limit must be more than 0")
	case c.Cluster && c.OrphanLimit <= 0:
		return fmt.Errorf("--orphan-limit must be more than 0")
	}
	if err := request.CheckInline(c.Driver.Inline); err != nil {
		return fmt.Errorf("--inline-parameters: %w", err)
	}
	if err := c.checkMount(); err != nil {
		return err
	}
	if err := c.checkDatasets(); err != nil {
		return err
	}
	switch pool.Kind(c.ZoneKind) {
	case pool.DAX:
		if !pool.ValidName(c.ZoneName) {
			return fmt.Errorf("--zone %q: must be 1 to 63 letters, digits, dots and dashes, the first a letter or digit, and none of LVM's own (snapshot, pvmove)", c.ZoneName)
		}
		return nil
	case pool.None:
		return nil
	case pool.File:
		if c.File.Dir == "" || c.File.Size == 0 {
			return fmt.Errorf("--zone-kind file needs --zone-dir and --zone-size")
		}
		return c.File.Check()
	}
	return fmt.Errorf("--zone-kind %q: must be dax, file or none", c.ZoneKind)
}

// checkMount refuses ways to mount that do not work with the kind of the zone.
func (c *Config) checkMount() error {
	kind := pool.Kind(c.ZoneKind)
	switch c.Mount {
	case "", MountAuto:
		return nil
	case MountModule:
		if kind == pool.File {
			return fmt.Errorf("--mount module: the module mounts devices, and the volumes of --zone-kind file are files; use fuse or auto")
		}
		return nil
	case MountFUSE:
		if kind == pool.DAX {
			return fmt.Errorf("--mount fuse: the volumes of --zone-kind dax are block devices, whose page cache hides what other systems store; use module or auto, or --zone-kind file on a DAX file system")
		}
		if c.Keeper == "" {
			return fmt.Errorf("--mount fuse needs --keeper")
		}
		return nil
	case MountNone:
		if kind == pool.DAX {
			return fmt.Errorf("--mount none: volumes of --zone-kind dax are always mounted; use module or auto")
		}
		return nil
	}
	return fmt.Errorf("--mount %q: auto, module, fuse or none", c.Mount)
}

// checkDatasets refuses data sets on nodes that cannot mount volumes.
func (c *Config) checkDatasets() error {
	switch {
	case !c.Datasets.Enabled:
		return nil
	case !c.Cluster && c.Catalog == nil:
		return fmt.Errorf("--datasets needs --cluster")
	case pool.Kind(c.ZoneKind) == pool.File && !c.byFUSE():
		return fmt.Errorf("--datasets: this node cannot mount volumes, so it cannot fill them; set --keeper, and --mount auto or fuse")
	case c.Datasets.Grace < 0 || c.Datasets.Wait <= 0:
		return fmt.Errorf("--dataset-grace must not be negative, and --dataset-wait must be more than 0")
	}
	return nil
}

// byFUSE reports whether pods get mounts by FUSE servers.
func (c *Config) byFUSE() bool {
	return pool.Kind(c.ZoneKind) == pool.File && c.Keeper != "" && c.Mount != MountNone
}
