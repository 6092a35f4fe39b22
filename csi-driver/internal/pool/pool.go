// SPDX-License-Identifier: Apache-2.0

// Package pool says what the driver wants of a node's memory for volumes. There are two kinds (D14),
// each in a package of its own: dax, file.
package pool

import (
	"context"
	"strconv"
	"time"

	"stargate/csi-driver/internal/stargatectl"
)

// Sizes that all kinds have.
const (
	Extent    = int64(2) << 20
	MinVolume = int64(16) << 20
	MaxVolume = int64(64) << 40
	Gigabyte  = int64(1) << 30
)

// Kind is what a zone is made of.
type Kind string

const (
	// DAX is reserved memory of the node, cut by LVM; host, pods and machines share its volumes.
	DAX Kind = "dax"
	// File is a folder on a file system in memory; machines share its volumes, host and pods have
	// no mount.
	File Kind = "file"
	// None is a node without a zone, by its configuration.
	None Kind = "none"
)

// State is that of a volume, in stargatectl's words.
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

// Whole tells whether the volume can be used, now or when LVM has made its device.
func (s State) Whole() bool { return s == Ready || s == InUse || s == Inactive }

// Spec is what a volume is to be.
type Spec struct {
	Name       string
	Size       int64
	Align      int64  // its address is a multiple of
	Label      string // the name, if empty
	MaxSize    int64  // 0: the tool's default
	Reserve    int64  // memory behind it that is its own, to grow into
	RootOwner  string // "UID:GID", or as the tool has it
	RootMode   string // octal, or as the tool has it
	Lease      string // seconds, or as the tool has it
	HostSplice bool
	Origin     string // of Clone: the volume or snapshot that it is a copy of
}

// maxFactor is how many times as large a volume can become by default.
const maxFactor = 16

// Options are those of mkfs.stargatefs for it, but for size and address.
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
	return o
}

// LeaseMS is the lease as the volume shows it; 0: none.
func (s Spec) LeaseMS() int64 {
	seconds, err := strconv.ParseInt(s.Lease, 10, 64)
	if err != nil {
		return 0 // never
	}
	return seconds * 1000
}

// Volume is one that there is.
type Volume struct {
	Name      string
	Zone      string // the identity of the zone that it is in, if that is known
	State     State
	Path      string // of the device or file
	Base      stargatectl.Address
	Size      int64
	Memory    int64 // that is its own: the size, and what it can grow into
	CanGrowTo int64
	Alignment int64 // of its address
	UUID      string
	Label     string
	Origin    string // the volume or snapshot that it was made a copy of
	Why       string // if it is not whole: what the tool says
	Outside   bool   // a snapshot that is not of the zone
}

// Snapshot is a copy of a volume that stays as it is.
type Snapshot struct {
	Name    string
	Zone    string // the identity of the zone that it is in, or of the folder outside
	Source  string // the volume
	Path    string
	Size    int64 // of the volume, as it was
	Created time.Time
	Outside bool // it is a file, and not of the zone
}

// SourceID is the volume's. Of one outside nobody knows any more which zone that was in.
func (s Snapshot) SourceID() ID {
	if s.Outside {
		return ID{Name: s.Source}
	}
	return ID{Name: s.Source, Zone: s.Zone}
}

// Target is where a snapshot goes.
type Target string

const (
	InZone   Target = "zone"
	InFolder Target = "folder" // outside: package outside
	Either   Target = "either" // the zone, and outside if there is no room
)

// Volume is what a snapshot is to those who look into it, or copy it.
func (s Snapshot) Volume() Volume {
	return Volume{Name: s.Name, State: Snapshotted, Path: s.Path, Size: s.Size, Outside: s.Outside}
}

// Status is a zone's.
type Status struct {
	Name      string
	Size      int64
	Free      int64
	Largest   int64 // volume that there can be
	Largest1G int64 // the same from a multiple of 1 GiB on
	Volumes   int
	Others    int // that are not the driver's
	Damaged   bool
	Why       string // if it is damaged
}

// LargestAt is the largest volume at such an address, with so much reserve: that is memory like the rest, since a
// machine has all of it from the start.
func (s Status) LargestAt(align, reserve int64) int64 {
	if align > Extent {
		return s.Largest1G - reserve
	}
	return s.Largest - reserve
}

// Zone is a node's. Names are those of zone.ValidName. Errors are of package fault.
type Zone interface {
	Kind() Kind
	// Place is the identity of where such an id's volume or snapshot would be, if it is here: the zone, or a folder of
	// snapshots; "" if that has none. NoZone, NoAnswer as of Status.
	Place(ctx context.Context, of ID) (string, error)
	Status(ctx context.Context) (Status, error)
	// List has all volumes, those of others left out, by name.
	List(ctx context.Context) ([]Volume, error)
	// Glances has the same with what is in them, by a number of programs that does not grow with theirs.
	Glances(ctx context.Context) ([]Glance, error)
	// Get is NotFound if there is none.
	Get(ctx context.Context, name string) (Volume, error)
	// Activate makes one usable that is Inactive, as all may be after a boot.
	Activate(ctx context.Context, name string) (Volume, error)
	// Create is NoSpace with the largest size there can be. If it is cut off, at any point, a later
	// Create of the same name finds nothing, or the volume whole.
	Create(ctx context.Context, spec Spec) (Volume, error)
	// Delete of an absent one is no error; InUse if a live system has it mounted; NoZone if
	// that cannot be known.
	Delete(ctx context.Context, name string) error
	// Grow makes it as large at least; OutOfRange with the largest size there can be.
	Grow(ctx context.Context, name string, size int64) (Volume, error)
	// Clone makes a volume that has what another one has, or a snapshot: spec.Origin, which is source.
	// What Create says holds for it, too.
	Clone(ctx context.Context, spec Spec, source Volume) (Volume, error)
	// Snapshots has all, by name; Snapshot is NotFound if there is none of that name. An id that names no place is for
	// whichever has one; one that names a place which is not here is for the caller, who knows Place.
	Snapshots(ctx context.Context) ([]Snapshot, error)
	Snapshot(ctx context.Context, of ID) (Snapshot, error)
	// TakeSnapshot copies a volume as it is at one moment, used or not. If it is cut off, at
	// any point, a later one of the same name finds nothing, or the complete snapshot.
	TakeSnapshot(ctx context.Context, name string, source Volume, target Target) (Snapshot, error)
	// CopyOut copies one to a new file, as it is at one moment, used or not.
	CopyOut(ctx context.Context, source Volume, file string) error
	// DeleteSnapshot of an absent one is no error. Copies made of it, and its source, stay.
	DeleteSnapshot(ctx context.Context, of ID) error
	// Info is of the file system in it.
	Info(ctx context.Context, v Volume) (stargatectl.Info, error)
	Space(ctx context.Context, v Volume) (stargatectl.Space, error)
	Systems(ctx context.Context, v Volume) ([]stargatectl.System, error)
	Taken(ctx context.Context, v Volume) (int, error)
	// Ended fences the systems that a VM, by its UUID, has left on the volume, and names them.
	Ended(ctx context.Context, v Volume, machine string) ([]string, error)
	// Sweep removes what a killed call has left half made or half deleted. It may take as long
	// as it takes to wipe that.
	Sweep(ctx context.Context) error
	// Strays are unknown objects in the zone, for the log.
	Strays(ctx context.Context) ([]string, error)
}
