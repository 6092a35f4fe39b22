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

// Get is one volume.
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

// Activate has nothing to do: files are there.
func (z *Zone) Activate(ctx context.Context, name string) (pool.Volume, error) {
	return z.Get(ctx, name)
}

// List examines all volumes.
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

// Glances runs one program for all volumes. Volumes that it cannot read are examined one by one.
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

// glance is a file as it was before the look.
type glance struct {
	stargatectl.Glance
	st fs.FileInfo
}

// glance examines many volumes with one program. Volumes that the program refuses, and volumes
// whose files are too long, are left out.
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

// Status is the state of the zone.
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
	// This volume's members may have caused any other failure of the look, so the failure
	// concerns this volume alone.
	if err != nil {
		if _, err := os.Stat(v.Path); errors.Is(err, fs.ErrNotExist) {
			return v, notFound(name)
		}
		v.State, v.Why = pool.Damaged, err.Error()
		return v, nil
	}
	return z.described(name, info, t)
}

// described is a volume that could be read. If its superblock has another address than its note,
// the volume cannot be used, and keeps its addresses.
func (z *Zone) described(name string, info stargatectl.Info, t taken) (v pool.Volume, err error) {
	v = pool.Volume{Name: name, Zone: z.id, Path: z.path(name), State: pool.Ready}
	v.UUID, v.Label, v.Base = info.UUID, info.Label, info.Base
	v.Origin, _ = os.Readlink(z.folder.Path(origin, name)) // most have none
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

// canGrowTo is the least of the limits: memory, addresses, largest size of the file system.
func (z *Zone) canGrowTo(v pool.Volume, info stargatectl.Info, space pool.Space) (int64, error) {
	room, err := z.free()
	if err != nil {
		return 0, err
	}
	behind := space.Behind(int64(v.Base) + v.Memory)
	return max(v.Size, min(info.MaxSize, v.Memory+behind, allocated(v)+room)), nil
}

// allocated is the memory that a volume has already: its size, and the part of its reserve that is
// no hole. Earlier releases left the reserve as a hole.
func allocated(v pool.Volume) int64 {
	var st unix.Stat_t
	if err := unix.Stat(v.Path, &st); err != nil {
		return v.Size
	}
	return min(max(st.Blocks*512, v.Size), max(v.Memory, v.Size))
}

// taken is the present use of the addresses, including volumes that are being made.
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
	// changing is a volume without a note. Its file has changed since the call asked for its
	// address. The use is complete if there is none.
	changing string
}

// settled calls use with the addresses taken, while no other call takes or releases addresses.
// Programs run without the lock: a program that hangs delays only the call that runs it. So the
// lock is taken once the addresses of all present files are known. If a file was added meanwhile,
// settled asks for its address first.
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

// turns bounds how often a call asks for files that have changed since the last question. A member
// of a volume without a note can change its file without end.
const turns = 4

// try does nothing if a file was added or changed since the call asked. In the last turn such a
// file may have any address.
func (z *Zone) try(known addresses, last bool, use func(taken) error) (done bool, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	t, err := z.takenLocked(known)
	if err != nil || t.changing != "" && !last {
		return false, err
	}
	return true, use(t)
}

// addresses are the addresses of files that a call has found since it began.
type addresses map[file]address

// file is a file with the time of its inode's last change. The number alone is not enough: the next
// file may reuse it, and a rewritten file may name another address.
type file struct {
	number  uint64
	changed syscall.Timespec
}

func fileOf(st fs.FileInfo) file { return file{inode(st).Ino, inode(st).Ctim} }

type address struct {
	at    int64
	known bool // without an address in the superblock, the file may have any
}

// takenLocked takes addresses from the notes and from the addresses that the call has found. A file
// whose address is in neither may have any address. It runs no program.
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

// stat is nil if the volume does not exist.
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

// learn finds and notes the addresses of all files without a note that are not among the known
// ones. One program finds most addresses; the driver asks for the rest one by one.
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

// unknown calls use for each file without a note that is not among the known ones.
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

// learnMany runs one program for all files that addressOf would examine one by one.
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

// addressOf finds a file's address. If the file cannot be read, for any reason, its address is
// unknown. It fails only if the call itself has ended, so that one volume does not block the
// others.
func (z *Zone) addressOf(ctx context.Context, name string) (a address, there bool, err error) {
	info, err := z.tools.Info(ctx, z.path(name))
	if err == nil {
		return address{int64(info.Base), true}, true, nil
	}
	if ctx.Err() != nil {
		return a, false, errkind.Wrap(errkind.Internal, err, "volume %s", name)
	}
	left, err := z.stat(name)
	return address{}, left != nil && err == nil, err // or deleted meanwhile
}
