// SPDX-License-Identifier: Apache-2.0

// Package pool describes a node's memory for volumes: the types, and the contract of a zone. The
// two kinds of zone (D14) are in packages dax and file.
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

// Kind is the memory of a zone.
type Kind string

const (
	// DAX is reserved memory of the node, cut by LVM; host, pods and machines share its
	// volumes.
	DAX Kind = "dax"
	// File is a folder on a file system in memory; machines share its volumes, host and pods
	// have no mount.
	File Kind = "file"
	// None is a node without a zone, by its configuration.
	None Kind = "none"
)

// State is the state of a volume, in stargatectl's words.
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

// Whole reports whether the volume can be used, now or once LVM has made its device.
func (s State) Whole() bool { return s == Ready || s == InUse || s == Inactive }

// Spec describes a volume to make.
type Spec struct {
	Name       string
	Size       int64
	Align      int64  // of its address
	Label      string // empty: its name
	MaxSize    int64  // 0: the tool's default
	Reserve    int64  // memory behind the volume that belongs to it, to grow into
	RootOwner  string // "UID:GID"; empty: the tool's default
	RootMode   string // octal; empty: the tool's default
	Lease      string // seconds; empty: the tool's default
	HostSplice bool
	DataAtomic bool
	Origin     string // of Clone: the volume or snapshot to copy
}

// maxFactor is how many times as large a volume can become by default.
const maxFactor = 16

// Options are the options of mkfs.stargatefs, without size and address.
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

// LeaseMS is the lease in milliseconds, as in the superblock. 0: none.
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
	Path      string // of the device or file
	Base      stargatectl.Address
	Size      int64
	Memory    int64 // its size and its reserve
	CanGrowTo int64
	Alignment int64 // of its address
	UUID      string
	Label     string
	Origin    string // the volume or snapshot that was copied
	Why       string // why it is not whole, in the tool's words
	Outside   bool   // a snapshot in a folder outside of the zone
}

// Snapshot is a copy of a volume that does not change.
type Snapshot struct {
	Name    string
	Zone    string // the identity of its zone or folder
	Source  string // the volume
	Path    string
	Size    int64 // of the volume when it was copied
	Created time.Time
	Outside bool // it is a file in a folder outside of the zone
}

// SourceID is the volume's id. A snapshot in a folder does not record the zone of its volume.
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
	InFolder Target = "folder" // of package outside
	Either   Target = "either" // the zone, or the folder if the zone has no room
)

// Volume is the snapshot as a source of looks and copies.
func (s Snapshot) Volume() Volume {
	return Volume{Name: s.Name, State: Snapshotted, Path: s.Path, Size: s.Size, Outside: s.Outside}
}

// Status is the state of a zone.
type Status struct {
	Name      string
	Size      int64
	Free      int64
	Largest   int64 // size of a new volume
	Largest1G int64 // the same at a multiple of 1 GiB
	Volumes   int
	Others    int // objects of other programs
	Damaged   bool
	Why       string // why it is damaged
}

// LargestAt is the size of the largest volume with an alignment and a reserve. The reserve takes
// its memory from the start.
func (s Status) LargestAt(align, reserve int64) int64 {
	if align > Extent {
		return s.Largest1G - reserve
	}
	return s.Largest - reserve
}

// Zone is a node's zone: the contract that each kind fulfils. Only the wiring of the driver needs
// all of it. Other callers declare the part that they use. Names are valid by ValidName, and errors
// are of package errkind.
type Zone interface {
	Kind() Kind
	// Place is the identity of the zone or folder of this node that would have the id's volume
	// or snapshot; "" if it has no identity. It fails with NoZone and NoAnswer like Status.
	Place(ctx context.Context, of ID) (string, error)
	Status(ctx context.Context) (Status, error)
	// List returns the driver's volumes, sorted by name.
	List(ctx context.Context) ([]Volume, error)
	// Glances returns the same with their content. The number of programs that it runs does not
	// depend on the number of volumes.
	Glances(ctx context.Context) ([]Glance, error)
	// Get fails with NotFound if there is no such volume.
	Get(ctx context.Context, name string) (Volume, error)
	// Activate makes an Inactive volume usable. After a boot all volumes may be Inactive.
	Activate(ctx context.Context, name string) (Volume, error)
	// Create fails with NoSpace, and names the largest possible size. If it is cut off, at any
	// point, a later Create of the same name finds nothing, or the whole volume.
	Create(ctx context.Context, spec Spec) (Volume, error)
	// Delete succeeds if there is no such volume. It fails with InUse if a live system has the
	// volume mounted, and with NoZone if the driver cannot find that out.
	Delete(ctx context.Context, name string) error
	// Grow makes the volume at least as large. It fails with OutOfRange, and names the largest
	// possible size.
	Grow(ctx context.Context, name string, size int64) (Volume, error)
	// Clone makes a copy of a volume or snapshot: of source, which spec.Origin names. It fails
	// and continues like Create.
	Clone(ctx context.Context, spec Spec, source Volume) (Volume, error)
	// Snapshots returns all, sorted by name. If it fails, it may return some of them. Snapshot
	// fails with NotFound if there is none of that name. For an id without a place it looks at
	// every place of this node. Callers compare an id's place with Place.
	Snapshots(ctx context.Context) ([]Snapshot, error)
	Snapshot(ctx context.Context, of ID) (Snapshot, error)
	// TakeSnapshot copies a volume as it is at one moment, used or not. If it is cut off, at
	// any point, a later call of the same name finds nothing, or the complete snapshot.
	TakeSnapshot(ctx context.Context, name string, source Volume, target Target) (Snapshot, error)
	// CopyOut copies a volume to a new file, as it is at one moment, used or not.
	CopyOut(ctx context.Context, source Volume, file string) error
	// DeleteSnapshot succeeds if there is none. Its source and its copies stay.
	DeleteSnapshot(ctx context.Context, of ID) error
	// Info, Space, Systems and Taken look at the file system in the volume.
	Info(ctx context.Context, v Volume) (stargatectl.Info, error)
	Space(ctx context.Context, v Volume) (stargatectl.Space, error)
	Systems(ctx context.Context, v Volume) ([]stargatectl.System, error)
	Taken(ctx context.Context, v Volume) (int, error)
	// Ended fences the systems that a VM, by its UUID, has left on the volume, and names them.
	Ended(ctx context.Context, v Volume, machine string) ([]string, error)
	// Sweep removes objects that a killed call has left half made or half deleted. Wiping them
	// may take long.
	Sweep(ctx context.Context) error
	// Strays are unknown objects in the zone, for the log.
	Strays(ctx context.Context) ([]string, error)
}
