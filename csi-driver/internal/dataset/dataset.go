// SPDX-License-Identifier: Apache-2.0

// Package dataset keeps this node's copies of data sets. A node has one copy, whatever the number
// of its pods. The copy is a volume of the zone, which the first pod makes the driver fill
// (docs/datasets.md).
//
// The state is in the volumes, and in the kernel's table of mounts. A record in each volume says
// whose copy it is, and whether it is complete. So a driver that was killed continues, and after a
// power cut that has emptied the zone, copies are missing and are filled again.
package dataset

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"stargate/csi-driver/internal/dataset/fill"
	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
	"stargate/csi-driver/internal/stargatectl"
)

// Cluster reads the objects, and reports to them.
type Cluster interface {
	// Dataset fails with NotFound if there is no such object.
	Dataset(ctx context.Context, namespace, name string) (*v1alpha1.StargateDataset, error)
	Datasets(ctx context.Context) ([]v1alpha1.StargateDataset, error)
	Secret(ctx context.Context, namespace, name string) (map[string][]byte, error)
	// NodeLabels returns the labels of this node.
	NodeLabels(ctx context.Context) (map[string]string, error)
	// NodeAddresses returns the IP addresses of this node.
	NodeAddresses(ctx context.Context) ([]netip.Addr, error)
	// Tell writes this node's entry of the status; nil removes it.
	Tell(ctx context.Context, namespace, name string, s *v1alpha1.NodeStatus) error
	// Event reports an event about the object.
	Event(d *v1alpha1.StargateDataset, warning bool, reason, words string)
}

// Zone has the methods of the node's zone that copies need. pool.Zone documents the contract.
type Zone interface {
	Status(ctx context.Context) (pool.Status, error)
	List(ctx context.Context) ([]pool.Volume, error)
	Get(ctx context.Context, name string) (pool.Volume, error)
	Activate(ctx context.Context, name string) (pool.Volume, error)
	Create(ctx context.Context, spec pool.Spec) (pool.Volume, error)
	Delete(ctx context.Context, name string) error
}

// Shower mounts volumes. publish.Presenter documents the contract.
type Shower interface {
	Stage(ctx context.Context, v pool.Volume, path string, o publish.Options) error
	Publish(ctx context.Context, v pool.Volume, staging, target string, o publish.Options) error
	Withdraw(ctx context.Context, path string) error
	Shown(v pool.Volume) ([]string, error)
}

// Config is the operator's configuration.
type Config struct {
	Node string
	// Dir is the folder of the driver's own mounts of copies, in kubelet's folder.
	Dir string
	// Hosts are the hosts from which data sets may come (source.Access).
	Hosts []string
	// NodeQuota and NamespaceQuota limit the memory of copies on this node: of all, and of the
	// copies of one namespace. 0: no limit.
	NodeQuota, NamespaceQuota int64
	// Grace is the time that a copy without pods is kept.
	Grace time.Duration
	// Wait is the time that the call for a pod waits for a copy that is being filled.
	Wait time.Duration
	// Seal makes files of a mounted volume final.
	Seal func(ctx context.Context, dir string, names []string) error
	// Period is the time between two looks of Run. First and Last limit the time between a
	// failed try and the next. Tests set them.
	Period, First, Last time.Duration
	// Turn is the time after which a fill lets others go first that wait.
	Turn time.Duration
}

// Limits.
const (
	fillsAtOnce = 4 // and one of each namespace
	planLimit   = 5 * time.Minute
	// A range of 16 MiB that is interrupted begins anew. So a turn is long enough for a range
	// from a slow source (9 KiB/s).
	turn        = 30 * time.Minute
	removeLimit = time.Hour
	period      = 30 * time.Second
	tellEvery   = 5 * time.Second
	firstRetry  = 10 * time.Second
	lastRetry   = 5 * time.Minute
	// A copy that fails is not tried for ever after its last pod has gone.
	patience = 15 * time.Minute
	// A copy that was just filled waits this long for its pod. Kubelet calls again within two
	// minutes, so the copy is not removed and filled again in the meantime.
	promise = 5 * time.Minute
	// A look does not wait longer for a removal, which continues.
	removeWait = 2 * time.Second
	// Copies without pods go if the largest new volume is smaller than this part of the zone.
	pressure = 10
)

// Record is in each copy.
type Record struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Wanted    string `json:"wanted"`  // StargateDataset.Wanted
	Version   string `json:"version"` // fill.Plan.Version
	Bytes     int64  `json:"bytes"`
	Complete  bool   `json:"complete"`
}

// hold is a copy of this node. Manager.mu guards it.
type hold struct {
	Record
	volume   pool.Volume
	made     time.Time
	used     time.Time // when a pod last had it
	pods     int64
	uses     int       // calls that mount it
	removing bool      // a call removes it
	ahead    bool      // its data set is filled ahead of pods
	promised time.Time // until then, the copy waits for its first pod
	checked  time.Time
}

// reservation is the memory of a volume that is being created.
type reservation struct {
	namespace string
	size      int64
}

// Manager keeps the copies of one node.
type Manager struct {
	config  Config
	zone    Zone
	show    Shower
	cluster Cluster
	slots   *slots
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	adopted bool
	// unread has the copies of an earlier driver that could not be read yet.
	unread map[string]pool.Volume
	// reserved has the volumes that are being created.
	reserved map[string]reservation
	holds    map[string]*hold    // by the names of their volumes
	fills    map[string]*filling // by the UIDs of their data sets
	told     map[string]told     // by the UIDs of their data sets
	counts   map[key]*counts
}

// key names a data set.
type key struct{ namespace, name string }

type counts struct{ fills, failures int64 }

type told struct {
	key
	status v1alpha1.NodeStatus
}

// New returns a Manager, which Run makes work.
func New(config Config, z Zone, show Shower, of Cluster) *Manager {
	if config.First == 0 {
		config.First, config.Last = firstRetry, lastRetry
	}
	if config.Period == 0 {
		config.Period = period
	}
	if config.Turn == 0 {
		config.Turn = turn
	}
	ctx, stop := context.WithCancel(stargatectl.Changing(context.Background()))
	return &Manager{
		config: config, zone: z, show: show, cluster: of, slots: newSlots(config.Turn), ctx: ctx, stop: stop,
		unread: map[string]pool.Volume{}, reserved: map[string]reservation{}, holds: map[string]*hold{},
		fills: map[string]*filling{}, told: map[string]told{}, counts: map[key]*counts{},
	}
}

// staging and work are the paths of the driver's own mounts of a copy.
func (m *Manager) staging(name string) string { return filepath.Join(m.config.Dir, name) }
func (m *Manager) work(name string) string    { return filepath.Join(m.config.Dir, name+".files") }

// mount mounts a copy for the driver itself. It can be repeated.
func (m *Manager) mount(ctx context.Context, v pool.Volume) error {
	for _, path := range []string{m.staging(v.Name), m.work(v.Name)} {
		if err := os.MkdirAll(path, 0o750); err != nil {
			return errkind.Wrap(errkind.Internal, err, "folder of data sets")
		}
	}
	if err := m.show.Stage(ctx, v, m.staging(v.Name), publish.Options{}); err != nil {
		return err
	}
	return m.show.Publish(ctx, v, m.staging(v.Name), m.work(v.Name), publish.Options{})
}

// unmount reverses mount.
func (m *Manager) unmount(ctx context.Context, name string) error {
	for _, path := range []string{m.work(name), m.staging(name)} {
		if err := m.show.Withdraw(ctx, path); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return errkind.Wrap(errkind.Internal, err, "folder of data sets")
		}
	}
	return nil
}

// mostRecord limits the size of a record.
const mostRecord = 64 << 10

// readRecord reads the record of a mounted copy. A copy without one was interrupted at its
// beginning.
func readRecord(root *os.Root) (Record, error) {
	var r Record
	st, err := root.Lstat(fill.RecordFile)
	if os.IsNotExist(err) {
		return r, nil
	}
	if err != nil || !st.Mode().IsRegular() || st.Size() > mostRecord {
		return r, errkind.Wrap(errkind.Internal, err, "the record of a copy cannot be read")
	}
	text, err := root.ReadFile(fill.RecordFile)
	if err != nil {
		return r, errkind.Wrap(errkind.Internal, err, "the record of a copy")
	}
	if json.Unmarshal(text, &r) != nil {
		return Record{}, nil
	}
	return r, nil
}

func writeRecord(root *os.Root, r Record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := fill.WriteFile(root, fill.RecordFile, append(text, '\n')); err != nil {
		return errkind.Wrap(errkind.Internal, err, "the record of a copy")
	}
	return nil
}

// pods returns the number of pods that have the copy.
func (m *Manager) pods(v pool.Volume) (int64, error) {
	paths, err := m.show.Shown(v)
	if err != nil {
		return 0, err
	}
	n := int64(0)
	for _, path := range paths {
		if path != m.staging(v.Name) && path != m.work(v.Name) {
			n++
		}
	}
	return n, nil
}
