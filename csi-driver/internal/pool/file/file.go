// SPDX-License-Identifier: Apache-2.0

// Package file is a zone of files (D14): each volume is a file on tmpfs, hugetlbfs or a DAX file
// system. Its address is its own on the node, so that a VM can have several volumes. A link beside
// the file notes address and length, because members of the volume can write the file. The file and
// its name have everything else.
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

// Names of files in a zone, in addition to those in all folders.
const (
	suffix   = ".stargate"
	origin   = ".from-" // a link to the name of a copy's source
	place    = ".at-"   // a link with the place of a volume: its address, and how much memory it owns
	lockName = ".stargate-zone"
)

// Config is the operator's configuration of a zone of files.
type Config struct {
	Dir  string
	Node string
	// Base and Size are the guest-physical addresses for which volumes are made. So Size is
	// also the bound of all volumes together.
	Base, Size int64
	// Group owns the files: the group of the VMs' QEMU.
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
	made map[string]pool.Span // being made, or to be larger
}

var _ pool.Zone = (*Zone)(nil)

// Open waits until no other process has the zone, and removes half-made files.
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

// Check checks all that does not depend on the node.
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
// writes that back and drops it at any time, and a VM has the file as its memory.
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

// Close releases the zone for another process.
func (z *Zone) Close() error { return z.lock.Close() }

// Kind is pool.File.
func (z *Zone) Kind() pool.Kind { return pool.File }

// Place was found, or made, by Open.
func (z *Zone) Place(context.Context, pool.ID) (string, error) { return z.id, nil }

// leftLink reports whether a file is a link with the origin or the place of a volume that does not
// exist.
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

// Strays are files that are no volumes.
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

// names are the names of all volumes, sorted.
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

// unseen is the error of a look at the folder. An absent folder is no zone; after any other error
// the content is unknown.
func unseen(err error) error {
	kind := errkind.NoAnswer
	if errors.Is(err, fs.ErrNotExist) {
		kind = errkind.NoZone
	}
	return errkind.Wrap(kind, err, "zone of files")
}

// free is the space that the file system has left for volumes.
func (z *Zone) free() (int64, error) {
	n, err := z.folder.Free()
	if err != nil {
		return 0, unseen(err)
	}
	return n / pool.Extent * pool.Extent, nil
}
