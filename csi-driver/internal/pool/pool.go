// SPDX-License-Identifier: Apache-2.0

// Package pool describes a node's memory for volumes. It has the types and the contract of a zone.
// Packages dax and file implement the two kinds of zone (D14).
package pool

import (
	"context"
	"strconv"
	"time"

	"stargate/csi-driver/internal/stargatectl"
)

// Sizes of all kinds of zone.
const (
	Extent    = int64(2) << 20
	MinVolume = int64(16) << 20
	MaxVolume = int64(64) << 40
	Gigabyte  = int64(1) << 30
)

// Kind is the kind of a zone's memory.
type Kind string

const (
	// DAX is reserved memory of the node, which LVM divides. The host, pods and VMs share its
	// volumes.
	DAX Kind = "dax"
	// File is a folder on a file system in memory. VMs share its volumes; the host and pods
	// cannot mount them.
	File Kind = "file"
	// None is the kind on a node that is configured to have no zone.
	None Kind = "none"
)

// State is the state of a volume, as stargatectl names it.
type State string

const (
	Ready       State = "ready"
	InUse       State = "in use"
	Inactive    State = "inactive"
	Moved       State = "moved"
	Damaged     State = "damaged"
	Unfinished  State = "unfinished"
	Missing     State = "missing"
	Scattered   State = "scattered"
	Foreign     State = "foreign"
	Snapshotted State = "snapshot"
)

// Whole reports whether the volume can be used, immediately or after LVM has created its device.
func (s State) Whole() bool { return s == Ready || s == InUse || s == Inactive }

// Spec describes a volume that should be created.
type Spec struct {
	Name       string
	Size       int64
	Align      int64  // alignment of the address
	Label      string // empty: its name
	MaxSize    int64  // 0: the tool's default
	Reserve    int64  // memory behind the volume, into which it can grow
	RootOwner  string // "UID:GID"; empty: the tool's default
	RootMode   string // octal; empty: the tool's default
	Lease      string // seconds; empty: the tool's default
	HostSplice bool
	DataAtomic bool
	Origin     string // only for Clone: the volume or snapshot to copy
}

// maxFactor is the default limit of growth: a multiple of the volume's first size.
const maxFactor = 16

// Options returns the options of mkfs.stargatefs, without size and address.
func (s Spec) Options() []string {
	var o []string
	add := func(name, value string) {
		if value != "" {
			o = append(o, name, value)
		}
	}
	if s.Label != "" {
		add("--label", s.Label)
	}
	most := s.MaxSize
	if all := s.Size + s.Reserve; most == 0 && all > maxFactor*s.Size {
		most = all
	}
	if most != 0 {
		add("--max-size", decimal(most))
	}
	add("--root-owner", s.RootOwner)
	add("--root-mode", s.RootMode)
	add("--lease", s.Lease)
	if s.HostSplice {
		add("--param", "host-splice")
	}
	if s.DataAtomic {
		add("--param", "data-atomic")
	}
	return o
}

// LeaseMS returns the lease in milliseconds, as in the superblock. 0 means no lease.
func (s Spec) LeaseMS() int64 {
	seconds, err := strconv.ParseInt(s.Lease, 10, 64)
	if err != nil {
		return 0 // never
	}
	return seconds * 1000
}

// Volume is an existing volume.
type Volume struct {
	Name      string
	Zone      string // the identity of its zone, if known
	State     State
	Path      string // path of the device or file
	Base      stargatectl.Address
	Size      int64
	Memory    int64 // sum of size and reserve
	CanGrowTo int64
	Alignment int64 // alignment of the address
	UUID      string
	Label     string
	Origin    string // source of a copy: a volume or snapshot
	Why       string // the tool's reason why the volume cannot be used
	Outside   bool   // a snapshot in a folder outside of the zone
}

// Snapshot is a copy of a volume that does not change.
type Snapshot struct {
	Name    string
	Zone    string // the identity of its zone or folder
	Source  string // the volume
	Path    string
	Size    int64 // size of the volume at the time of the snapshot
	Created time.Time
	Outside bool // the snapshot is a file in a folder outside of the zone
}

// SourceID returns the id of the snapshot's volume. A snapshot in a folder does not record the zone
// of its volume.
func (s Snapshot) SourceID() ID {
	if s.Outside {
		return ID{Name: s.Source}
	}
	return ID{Name: s.Source, Zone: s.Zone}
}

// Target is the place of a new snapshot.
type Target string

const (
	InZone   Target = "zone"
	InFolder Target = "folder" // the folder of package outside
	Either   Target = "either" // the zone, or the folder if the zone has no room
)

// Volume returns the snapshot as a Volume that can be read and copied.
func (s Snapshot) Volume() Volume {
	return Volume{Name: s.Name, State: Snapshotted, Path: s.Path, Size: s.Size, Outside: s.Outside}
}

// Status is the state of a zone.
type Status struct {
	Name      string
	Size      int64
	Free      int64
	Largest   int64 // size of a new volume
	Largest1G int64 // the same, aligned to 1 GiB
	Volumes   int
	Others    int // objects of other programs
	Damaged   bool
	Why       string // why the zone is damaged
}

// LargestAt returns the size of the largest new volume with an alignment and a reserve. The
// reserve's memory is allocated with the volume.
func (s Status) LargestAt(align, reserve int64) int64 {
	if align > Extent {
		return s.Largest1G - reserve
	}
	return s.Largest - reserve
}

// Zone is a node's zone: the contract that each kind fulfils. Only the code that starts the driver
// needs the complete interface. Other callers declare the methods that they use. Names must be
// valid by ValidName, and errors are of package errkind.
type Zone interface {
	Kind() Kind
	// Place returns the identity of the zone or folder of this node that would hold the id's
	// volume or snapshot. It returns "" if this place has no identity. It fails with NoZone and
	// NoAnswer like Status.
	Place(ctx context.Context, of ID) (string, error)
	Status(ctx context.Context) (Status, error)
	// List returns the driver's volumes, sorted by name.
	List(ctx context.Context) ([]Volume, error)
	// Glances returns the same volumes with their content. The number of programs that it runs
	// does not depend on the number of volumes.
	Glances(ctx context.Context) ([]Glance, error)
	// Get returns a volume. It fails with NotFound if the volume does not exist.
	Get(ctx context.Context, name string) (Volume, error)
	// Activate makes an Inactive volume usable. After a boot all volumes may be Inactive.
	Activate(ctx context.Context, name string) (Volume, error)
	// Create creates a volume. If there is no room, it fails with NoSpace, and the error names
	// the largest possible size. If Create is interrupted at any point, a later Create of the
	// same name finds nothing, or the complete volume.
	Create(ctx context.Context, spec Spec) (Volume, error)
	// Delete deletes a volume. It succeeds if the volume does not exist. It fails with InUse if
	// a live system has the volume mounted, and with NoZone if the driver cannot check this.
	Delete(ctx context.Context, name string) error
	// Grow extends a volume to at least the given size. If this is impossible, it fails with
	// OutOfRange, and the error names the largest possible size.
	Grow(ctx context.Context, name string, size int64) (Volume, error)
	// Clone copies a volume or snapshot: source, whose name is spec.Origin. Failures and
	// interruptions are as with Create.
	Clone(ctx context.Context, spec Spec, source Volume) (Volume, error)
	// Snapshots returns all snapshots, sorted by name. If it fails, it may still return some of
	// them. Snapshot returns one snapshot, or fails with NotFound if it does not exist. For an
	// id without a place, it searches every place of this node. Callers compare an id's place
	// with Place.
	Snapshots(ctx context.Context) ([]Snapshot, error)
	Snapshot(ctx context.Context, of ID) (Snapshot, error)
	// TakeSnapshot copies the state of a volume at one moment, even while the volume is in use.
	// If TakeSnapshot is interrupted at any point, a later call of the same name finds nothing,
	// or the complete snapshot.
	TakeSnapshot(ctx context.Context, name string, source Volume, target Target) (Snapshot, error)
	// CopyOut copies the state of a volume at one moment to a new file, even while the volume
	// is in use.
	CopyOut(ctx context.Context, source Volume, file string) error
	// DeleteSnapshot deletes a snapshot, but not its source or its copies. It succeeds if the
	// snapshot does not exist.
	DeleteSnapshot(ctx context.Context, of ID) error
	// Info, Space, Systems and Taken read the file system in the volume.
	Info(ctx context.Context, v Volume) (stargatectl.Info, error)
	Space(ctx context.Context, v Volume) (stargatectl.Space, error)
	Systems(ctx context.Context, v Volume) ([]stargatectl.System, error)
	Taken(ctx context.Context, v Volume) (int, error)
	// Ended fences the systems that an ended VM has left on the volume, and returns their
	// names. machine is the VM's UUID.
	Ended(ctx context.Context, v Volume, machine string) ([]string, error)
	// Sweep removes incomplete objects that killed calls have left. This may take long, because
	// their memory must be wiped.
	Sweep(ctx context.Context) error
	// Strays returns unknown objects in the zone, for the log.
	Strays(ctx context.Context) ([]string, error)
}
