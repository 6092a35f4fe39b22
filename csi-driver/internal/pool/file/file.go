// SPDX-License-Identifier: Apache-2.0

// Package file implements a zone of files (D14): each volume is a file on tmpfs, hugetlbfs or a DAX
// file system. No two volumes of the node have the same address, so that a VM can have several
// volumes. A link next to the file stores address and length, because members of the volume can
// write the file. The file and its name hold all other data.
package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/folder"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// Prefixes of file names in a zone, in addition to those in all folders.
const (
	suffix   = ".stargate"
	origin   = ".from-" // a link whose target is the name of a copy's source
	place    = ".at-"   // a link whose target is a volume's place: its address and the size of its memory
	lockName = ".stargate-zone"
)

// Config is the operator's configuration of a zone of files.
type Config struct {
	Dir  string
	Node string
	// Base and Size are the range of guest-physical addresses for volumes. So Size also limits
	// the sum of all volumes.
	Base, Size int64
	// Group is the group of the files: that of the VMs' QEMU.
	Group int
}

// Zone is a zone that only this process changes.
type Zone struct {
	config Config
	folder folder.Folder
	tools  *stargatectl.Tools
	pool.Look
	lock *os.File
	id   string

	mu   sync.Mutex
	made map[string]pool.Span // reserved for volumes that are being created or extended
}

var _ pool.Zone = (*Zone)(nil)

// Open opens a zone. It waits until no other process has the zone open, and removes incomplete
// files.
func Open(ctx context.Context, config Config, t *stargatectl.Tools) (*Zone, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	z := &Zone{config: config, made: map[string]pool.Span{}}
	var err error
	at := folder.Place{Dir: config.Dir, Lock: lockName, Node: config.Node, Left: z.leftLink, Fits: config.inMemory}
	if z.folder, z.lock, err = folder.Open(ctx, at); err != nil {
		return nil, fmt.Errorf("zone of files: %w", err)
	}
	z.id = pool.Identity(pool.File, z.folder.Own)
	z.tools = t.Holding(z.lock)
	z.Look = pool.Look{Tools: z.tools}
	return z, nil
}

// Check checks the parts of the configuration that do not depend on the node.
func (c Config) Check() error {
	const top = int64(4095) << 40
	switch {
	case !filepath.IsAbs(c.Dir):
		return fmt.Errorf("zone of files: folder %q is not an absolute path", c.Dir)
	case c.Base < 4<<30 || c.Base%pool.Extent != 0:
		return fmt.Errorf("zone of files: base %#x: must be 4 GiB or more, a multiple of 2 MiB", c.Base)
	case c.Size < pool.MinVolume || c.Size%pool.Extent != 0 || c.Base+c.Size > top:
		return fmt.Errorf("zone of files: size %d: must be %d or more, a multiple of 2 MiB, and end below 4095 TiB", c.Size, pool.MinVolume)
	}
	return nil
}

// inMemory refuses a folder on a disk. Volumes there would be in the node's page cache. The node
// may write back and drop page cache at any time, but VMs have the files as their memory.
func (c Config) inMemory(lock *os.File) error {
	var of unix.Statfs_t
	if err := unix.Fstatfs(int(lock.Fd()), &of); err != nil {
		return fmt.Errorf("%s: %w", c.Dir, err)
	}
	if folder.Volatile(of.Type) {
		return nil
	}
	var st unix.Statx_t
	if err := unix.Statx(int(lock.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &st); err != nil {
		return fmt.Errorf("%s: %w", c.Dir, err)
	}
	if st.Attributes&unix.STATX_ATTR_DAX == 0 {
		return fmt.Errorf("folder %s is not in memory: it has to be on tmpfs, on hugetlbfs, or on a file system whose files are DAX", c.Dir)
	}
	return nil
}

// Close unlocks the zone for another process.
func (z *Zone) Close() error { return z.lock.Close() }

// Kind returns pool.File.
func (z *Zone) Kind() pool.Kind { return pool.File }

// Place returns the zone's identity, which Open has read or created.
func (z *Zone) Place(context.Context, pool.ID) (string, error) { return z.id, nil }

// leftLink reports whether a file is a link with the origin or the place of an absent volume.
func (z *Zone) leftLink(file string) bool {
	name, ok := strings.CutPrefix(file, origin)
	if !ok {
		name, ok = strings.CutPrefix(file, place)
	}
	if !ok {
		return false
	}
	_, err := os.Lstat(z.path(name))
	return errors.Is(err, fs.ErrNotExist)
}

// Sweep removes leftovers of calls that could not clean up.
func (z *Zone) Sweep(ctx context.Context) error {
	if err := z.folder.Sweep(ctx, z.leftLink); err != nil {
		return errkind.Wrap(errkind.Internal, err, "zone of files")
	}
	return nil
}

// Strays returns the files that are no volumes.
func (z *Zone) Strays(context.Context) ([]string, error) {
	entries, err := z.folder.Entries()
	if err != nil {
		return nil, fmt.Errorf("zone of files: %w", err)
	}
	var strays []string
	for _, e := range entries {
		if !ours(e.Name()) {
			strays = append(strays, e.Name())
		}
	}
	return strays, nil
}

func ours(file string) bool {
	if _, ok := volumeName(file); ok {
		return true
	}
	if _, _, ok := folder.Snapshot(file); ok {
		return true
	}
	return file == lockName || folder.Half(file) || strings.HasPrefix(file, origin) || strings.HasPrefix(file, place)
}

func volumeName(file string) (string, bool) {
	name, ok := strings.CutSuffix(file, suffix)
	return name, ok && pool.ValidName(name)
}

func (z *Zone) path(name string) string { return filepath.Join(z.config.Dir, name+suffix) }

// names returns the names of all volumes, sorted.
func (z *Zone) names() ([]string, error) {
	entries, err := z.folder.Entries()
	if err != nil {
		return nil, unseen(err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := volumeName(e.Name()); ok && e.Type().IsRegular() {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names, nil
}

// unseen converts an error of reading the folder. If the folder does not exist, there is no zone.
// After any other error, the content is unknown.
func unseen(err error) error {
	kind := errkind.NoAnswer
	if errors.Is(err, fs.ErrNotExist) {
		kind = errkind.NoZone
	}
	return errkind.Wrap(kind, err, "zone of files")
}

// free returns the space that the file system has left for volumes.
func (z *Zone) free() (int64, error) {
	n, err := z.folder.Free()
	if err != nil {
		return 0, unseen(err)
	}
	return n / pool.Extent * pool.Extent, nil
}
