// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// Get returns one volume.
func (z *Zone) Get(ctx context.Context, name string) (pool.Volume, error) {
	if !pool.ValidName(name) {
		return pool.Volume{}, notFound(name)
	}
	t, err := z.taken(ctx)
	if err != nil {
		return pool.Volume{}, err
	}
	return z.look(ctx, name, t)
}

// Activate only returns the volume, because files need no activation.
func (z *Zone) Activate(ctx context.Context, name string) (pool.Volume, error) {
	return z.Get(ctx, name)
}

// List returns all volumes.
func (z *Zone) List(ctx context.Context) ([]pool.Volume, error) {
	all, err := z.Glances(ctx)
	if err != nil {
		return nil, err
	}
	var volumes []pool.Volume
	for _, g := range all {
		volumes = append(volumes, g.Volume)
	}
	return volumes, nil
}

// Glances returns all volumes with their content. It runs one program for all volumes, and then
// examines the volumes that this program cannot read one by one.
func (z *Zone) Glances(ctx context.Context) ([]pool.Glance, error) {
	names, err := z.names()
	if err != nil {
		return nil, err
	}
	seen, err := z.glance(ctx, names)
	if err != nil {
		return nil, err
	}
	t, err := z.taken(ctx)
	if err != nil {
		return nil, err
	}
	var all []pool.Glance
	for _, name := range names {
		var g pool.Glance
		if s, ok := seen[name]; ok {
			g = pool.Glance{Seen: true, Info: *s.Info, Space: s.Space, Taken: s.Taken}
			g.Volume, err = z.described(name, *s.Info, t)
		} else {
			g.Volume, err = z.look(ctx, name, t)
		}
		if errkind.Is(err, errkind.NotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// glance is the content of a volume, with the state of its file before the read.
type glance struct {
	stargatectl.Glance
	st fs.FileInfo
}

// glance examines many volumes with one program. It leaves out volumes that the program refuses,
// and volumes whose files are too long.
func (z *Zone) glance(ctx context.Context, names []string) (map[string]glance, error) {
	files := map[string]fs.FileInfo{}
	var paths []string
	for _, name := range names {
		st, err := z.stat(name)
		if err != nil {
			return nil, err
		}
		at, noted, err := z.placed(name)
		if err != nil {
			return nil, err
		}
		if st != nil && (!noted || st.Size() <= at.Size) {
			files[name] = st
			paths = append(paths, z.path(name))
		}
	}
	found, err := z.tools.Look(ctx, paths)
	if err != nil && ctx.Err() != nil {
		return nil, errkind.Wrap(errkind.Internal, err, "volumes")
	}
	seen := map[string]glance{}
	for name, st := range files {
		if g, ok := found[z.path(name)]; ok {
			seen[name] = glance{g, st}
		}
	}
	return seen, nil
}

// Status returns the state of the zone.
func (z *Zone) Status(ctx context.Context) (pool.Status, error) {
	names, err := z.names()
	if err != nil {
		return pool.Status{}, err
	}
	t, err := z.taken(ctx)
	if err != nil {
		return pool.Status{}, err
	}
	space, unread := t.space, t.unread
	room, err := z.free()
	if err != nil {
		return pool.Status{}, err
	}
	strays, err := z.Strays(ctx)
	if err != nil {
		return pool.Status{}, err
	}
	why := ""
	if unread != "" {
		why = allTaken(unread)
	}
	return pool.Status{
		Name: z.config.Dir, Size: z.config.Size, Damaged: unread != "", Why: why,
		Free:      min(space.Free(), room),
		Largest:   min(space.Largest(pool.Extent), room),
		Largest1G: min(space.Largest(pool.Gigabyte), room),
		Volumes:   len(names), Others: len(strays),
	}, nil
}

func allTaken(unread string) string {
	return "volume " + unread + " cannot be read, and may have any address: repair or delete it before creating or growing volumes"
}

func notFound(name string) error { return errkind.New(errkind.NotFound, "there is no volume %q", name) }

func (z *Zone) look(ctx context.Context, name string, t taken) (pool.Volume, error) {
	v := pool.Volume{Name: name, Zone: z.id, Path: z.path(name), State: pool.Ready}
	st, err := os.Stat(v.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, notFound(name)
	}
	if err != nil {
		return v, errkind.Wrap(errkind.Internal, err, "volume %s", name)
	}
	v.Size = st.Size()
	if at, ok := t.of[name]; ok && st.Size() > at.Size {
		v.Size, v.Memory, v.State, v.Why = at.Size, at.Size, pool.Damaged, stretched(st.Size(), at.Size)
		return v, nil
	}
	info, err := z.tools.Info(ctx, v.Path)
	if err != nil && ctx.Err() != nil {
		return v, errkind.Wrap(errkind.Internal, err, "volume %s", name)
	}
	// The members of this volume may have caused any other failure of the read. So the failure
	// concerns only this volume.
	if err != nil {
		if _, err := os.Stat(v.Path); errors.Is(err, fs.ErrNotExist) {
			return v, notFound(name)
		}
		v.State, v.Why = pool.Damaged, err.Error()
		return v, nil
	}
	return z.described(name, info, t)
}

// described returns a volume that could be read. If its superblock has another address than its
// stored place, the volume cannot be used, but keeps its addresses.
func (z *Zone) described(name string, info stargatectl.Info, t taken) (v pool.Volume, err error) {
	v = pool.Volume{Name: name, Zone: z.id, Path: z.path(name), State: pool.Ready}
	v.UUID, v.Label, v.Base = info.UUID, info.Label, info.Base
	v.Origin, _ = os.Readlink(z.folder.Path(origin, name)) // most volumes have no origin
	at, ok := t.of[name]
	if !ok {
		at = pool.Span{Base: int64(info.Base), Size: info.Size} // a new file
	}
	v.Size, v.Memory, v.Alignment = info.Size, max(at.Size, info.Size), pool.Alignment(int64(info.Base))
	if int64(info.Base) != at.Base {
		v.State, v.Why, v.CanGrowTo = pool.Moved, elsewhere(int64(info.Base), at.Base), info.Size
		return v, nil
	}
	v.CanGrowTo, err = z.canGrowTo(v, info, t.space)
	return v, err
}

// canGrowTo returns the smallest of the limits: memory, addresses, largest size of the file system.
func (z *Zone) canGrowTo(v pool.Volume, info stargatectl.Info, space pool.Space) (int64, error) {
	room, err := z.free()
	if err != nil {
		return 0, err
	}
	behind := space.Behind(int64(v.Base) + v.Memory)
	return max(v.Size, min(info.MaxSize, v.Memory+behind, allocated(v)+room)), nil
}

// allocated returns the memory that a volume already has: its size, and the allocated part of its
// reserve. Earlier releases created the reserve as a hole.
func allocated(v pool.Volume) int64 {
	var st unix.Stat_t
	if err := unix.Stat(v.Path, &st); err != nil {
		return v.Size
	}
	return min(max(st.Blocks*512, v.Size), max(v.Memory, v.Size))
}

// taken returns the present use of the addresses, including volumes that are being created.
func (z *Zone) taken(ctx context.Context) (is taken, err error) {
	err = z.settled(ctx, func(t taken) error {
		is = t
		return nil
	})
	return is, err
}

// taken is the use of the zone's addresses, at one moment.
type taken struct {
	space  pool.Space
	of     map[string]pool.Span // the span of each volume
	unread string               // a volume with an unknown address
	// changing is a volume without a stored place whose file has changed since the call read
	// its address. If changing is empty, the use is complete.
	changing string
}

// settled calls use with the addresses in use, while no other call reserves or releases addresses.
// It runs stargatectl, which reads the addresses, without z.mu: if stargatectl hangs, no other call
// has to wait. It takes z.mu when the addresses of all present files are known. If a file was added
// meanwhile, it first reads the address of this file.
func (z *Zone) settled(ctx context.Context, use func(taken) error) error {
	known := addresses{}
	for turn := 1; ; turn++ {
		if err := z.learn(ctx, known); err != nil {
			return err
		}
		if done, err := z.try(known, turn == turns, use); done || err != nil {
			return err
		}
	}
}

// turns limits how often a call reads files again that have changed since the last read. A member
// of a volume without a stored place can change its file without end.
const turns = 4

// try calls use(), unless a file was added or changed since its address was read into known. In the
// last turn, it assumes that such a file may have any address.
func (z *Zone) try(known addresses, last bool, use func(taken) error) (done bool, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	t, err := z.takenLocked(known)
	if err != nil || t.changing != "" && !last {
		return false, err
	}
	return true, use(t)
}

// addresses has the addresses of files that a call has read since it began.
type addresses map[file]address

// file identifies a file by its inode number and the time of the inode's last change. The number
// alone is not enough: the next file may reuse it, and a rewritten file may have another address.
type file struct {
	number  uint64
	changed syscall.Timespec
}

func fileOf(st fs.FileInfo) file { return file{inode(st).Ino, inode(st).Ctim} }

type address struct {
	at    int64
	known bool // false: the superblock cannot be read, so the file may have any address
}

// takenLocked returns the use of the addresses. It combines the stored places and the addresses
// that the call has read. A file whose address is unknown may have any address. takenLocked runs no
// program.
func (z *Zone) takenLocked(known addresses) (t taken, err error) {
	names, err := z.names()
	if err != nil {
		return t, err
	}
	all := pool.Span{Base: z.config.Base, Size: z.config.Size}
	t.of = map[string]pool.Span{}
	var spans []pool.Span
	for _, name := range names {
		st, err := z.stat(name)
		if err != nil {
			return t, err
		}
		if st == nil {
			continue
		}
		span, noted, err := z.placed(name)
		if err != nil {
			return t, err
		}
		if !noted {
			a, ok := known[fileOf(st)]
			if !ok {
				t.changing = name
			}
			span = pool.Span{Base: a.at, Size: st.Size()}
			if !a.known {
				span, t.unread = all, name
			}
		}
		if t.unread != name {
			t.of[name] = span
		}
		spans = append(spans, span)
	}
	for _, span := range z.made {
		spans = append(spans, span)
	}
	t.space = pool.NewSpace(all, spans)
	return t, nil
}

// stat returns the state of a volume's file, or nil if the volume does not exist.
func (z *Zone) stat(name string) (fs.FileInfo, error) {
	st, err := os.Stat(z.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errkind.Wrap(errkind.Internal, err, "volume %s", name)
	}
	return st, nil
}

func inode(st fs.FileInfo) *syscall.Stat_t { return st.Sys().(*syscall.Stat_t) }

// learn reads and stores the addresses of all files that have no stored place and are not in known.
// One program reads most addresses; learn reads the rest one by one.
func (z *Zone) learn(ctx context.Context, known addresses) error {
	names, err := z.names()
	if err != nil {
		return err
	}
	if err := z.learnMany(ctx, names, known); err != nil {
		return err
	}
	return z.unknown(names, known, func(name string, st fs.FileInfo) error {
		a, there, err := z.addressOf(ctx, name)
		if err != nil || !there {
			return err
		}
		return z.learned(name, st, a, known)
	})
}

func (z *Zone) learned(name string, st fs.FileInfo, a address, known addresses) error {
	known[fileOf(st)] = a
	if !a.known {
		return nil
	}
	return z.adopt(name, st, a.at)
}

// unknown calls use for each file that has no stored place and is not in known.
func (z *Zone) unknown(names []string, known addresses, use func(name string, st fs.FileInfo) error) error {
	for _, name := range names {
		st, err := z.stat(name)
		if err != nil {
			return err
		}
		if st == nil {
			continue
		}
		if _, ok := known[fileOf(st)]; ok {
			continue
		}
		if _, noted, err := z.placed(name); noted || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if err := use(name, st); err != nil {
			return err
		}
	}
	return nil
}

// learnMany reads addresses with one program, which examines all files that addressOf would examine
// one by one.
func (z *Zone) learnMany(ctx context.Context, names []string, known addresses) error {
	var fresh []string
	err := z.unknown(names, known, func(name string, _ fs.FileInfo) error {
		fresh = append(fresh, name)
		return nil
	})
	if err != nil || len(fresh) < 2 {
		return err
	}
	seen, err := z.glance(ctx, fresh)
	if err != nil {
		return err
	}
	for name, g := range seen {
		if err := z.learned(name, g.st, address{int64(g.Info.Base), true}, known); err != nil {
			return err
		}
	}
	return nil
}

// addressOf reads a file's address. If the file cannot be read, for any reason, the address is
// unknown. addressOf fails only if the call itself has ended, so that one volume does not block the
// other volumes.
func (z *Zone) addressOf(ctx context.Context, name string) (a address, there bool, err error) {
	info, err := z.tools.Info(ctx, z.path(name))
	if err == nil {
		return address{int64(info.Base), true}, true, nil
	}
	if ctx.Err() != nil {
		return a, false, errkind.Wrap(errkind.Internal, err, "volume %s", name)
	}
	left, err := z.stat(name)
	return address{}, left != nil && err == nil, err // the file may have been deleted
}
