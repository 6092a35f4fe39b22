// SPDX-License-Identifier: Apache-2.0

package filezone

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/tools"
	"stargate/csi-driver/internal/zone"
)

// Get looks at one volume.
func (z *Zone) Get(ctx context.Context, name string) (zone.Volume, error) {
	if !zone.ValidName(name) {
		return zone.Volume{}, notFound(name)
	}
	space, _, err := z.space(ctx)
	if err != nil {
		return zone.Volume{}, err
	}
	return z.look(ctx, name, space)
}

// Activate has nothing to do: files are there.
func (z *Zone) Activate(ctx context.Context, name string) (zone.Volume, error) {
	return z.Get(ctx, name)
}

// List looks at all.
func (z *Zone) List(ctx context.Context) ([]zone.Volume, error) {
	all, err := z.Glances(ctx)
	if err != nil {
		return nil, err
	}
	var volumes []zone.Volume
	for _, g := range all {
		volumes = append(volumes, g.Volume)
	}
	return volumes, nil
}

// Glances is one program. Those that it cannot read are looked at one by one.
func (z *Zone) Glances(ctx context.Context) ([]zone.Glance, error) {
	names, err := z.names()
	if err != nil {
		return nil, err
	}
	seen, err := z.glance(ctx, names)
	if err != nil {
		return nil, err
	}
	space, _, err := z.space(ctx)
	if err != nil {
		return nil, err
	}
	var all []zone.Glance
	for _, name := range names {
		var g zone.Glance
		if s, ok := seen[name]; ok {
			g = zone.Glance{Seen: true, Info: *s.Info, Space: s.Space, Taken: s.Taken}
			g.Volume, err = z.described(name, s.st, *s.Info, space)
		} else {
			g.Volume, err = z.look(ctx, name, space)
		}
		if fault.Is(err, fault.NotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// glance is a file as it was before it was looked at.
type glance struct {
	tools.Glance
	st fs.FileInfo
}

// glance looks at many by one program, and notes their addresses. Volumes that the program refuses are left out.
func (z *Zone) glance(ctx context.Context, names []string) (map[string]glance, error) {
	files := map[string]fs.FileInfo{}
	var paths []string
	for _, name := range names {
		st, err := z.stat(name)
		if err != nil {
			return nil, err
		}
		if st != nil {
			files[name] = st
			paths = append(paths, z.path(name))
		}
	}
	found, err := z.tools.Look(ctx, paths)
	if err != nil && ctx.Err() != nil {
		return nil, fault.Wrap(fault.Internal, err, "volumes")
	}
	seen := map[string]glance{}
	for name, st := range files {
		if g, ok := found[z.path(name)]; ok {
			z.note(st, int64(g.Info.Base))
			seen[name] = glance{g, st}
		}
	}
	return seen, nil
}

// Status is of the whole zone.
func (z *Zone) Status(ctx context.Context) (zone.Status, error) {
	names, err := z.names()
	if err != nil {
		return zone.Status{}, err
	}
	space, unread, err := z.space(ctx)
	if err != nil {
		return zone.Status{}, err
	}
	room, err := z.free()
	if err != nil {
		return zone.Status{}, err
	}
	strays, err := z.Strays(ctx)
	if err != nil {
		return zone.Status{}, err
	}
	why := ""
	if unread != "" {
		why = allTaken(unread)
	}
	return zone.Status{
		Name: z.config.Dir, Size: z.config.Size, Damaged: unread != "", Why: why,
		Free:      min(space.Free(), room),
		Largest:   min(space.Largest(zone.Extent), room),
		Largest1G: min(space.Largest(zone.Gigabyte), room),
		Volumes:   len(names), Others: len(strays),
	}, nil
}

func allTaken(unread string) string {
	return "volume " + unread + " cannot be read, so that nobody knows which addresses are not its own: none are given away until it is restored or deleted"
}

func notFound(name string) error { return fault.New(fault.NotFound, "there is no volume %q", name) }

func (z *Zone) look(ctx context.Context, name string, space zone.Space) (zone.Volume, error) {
	v := zone.Volume{Name: name, Zone: z.id, Path: z.path(name), State: zone.Ready}
	st, err := os.Stat(v.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, notFound(name)
	}
	if err != nil {
		return v, fault.Wrap(fault.Internal, err, "volume %s", name)
	}
	v.Size = st.Size()
	info, err := z.tools.Info(ctx, v.Path)
	if err != nil && ctx.Err() != nil {
		return v, fault.Wrap(fault.Internal, err, "volume %s", name)
	}
	// This volume's members may have caused any other failure of the look, so the failure concerns this volume alone.
	if err != nil {
		if _, err := os.Stat(v.Path); errors.Is(err, fs.ErrNotExist) {
			return v, notFound(name)
		}
		v.State, v.Why = zone.Damaged, err.Error()
		return v, nil
	}
	z.note(st, int64(info.Base))
	return z.described(name, st, info, space)
}

// described is a volume that could be read.
func (z *Zone) described(name string, st fs.FileInfo, info tools.Info, space zone.Space) (v zone.Volume, err error) {
	v = zone.Volume{Name: name, Zone: z.id, Path: z.path(name), State: zone.Ready}
	v.UUID, v.Label, v.Base = info.UUID, info.Label, info.Base
	v.Origin, _ = os.Readlink(z.folder.Path(origin, name)) // most have none
	v.Size, v.Memory, v.Alignment = info.Size, st.Size(), zone.Alignment(int64(info.Base))
	v.CanGrowTo, err = z.canGrowTo(v, info, space)
	return v, err
}

// Memory, addresses, and what it was made for: the least of them counts.
func (z *Zone) canGrowTo(v zone.Volume, info tools.Info, space zone.Space) (int64, error) {
	room, err := z.free()
	if err != nil {
		return 0, err
	}
	behind := space.Behind(int64(v.Base) + v.Memory)
	return max(v.Size, min(info.MaxSize, v.Memory+behind, allocated(v)+room)), nil
}

// allocated is how much of a volume has its memory already: all of it, and of its reserve what is no hole. Releases
// before this one left a reserve as a hole.
func allocated(v zone.Volume) int64 {
	var st unix.Stat_t
	if err := unix.Stat(v.Path, &st); err != nil {
		return v.Size
	}
	return min(max(st.Blocks*512, v.Size), max(v.Memory, v.Size))
}

// space has what volumes take of the addresses, those that are being made included; and one that may have any.
func (z *Zone) space(ctx context.Context) (space zone.Space, unread string, err error) {
	err = z.settled(ctx, func(t taken) error {
		space, unread = t.space, t.unread
		return nil
	})
	return space, unread, err
}

// taken is what the zone's addresses are used for, at one moment.
type taken struct {
	space  zone.Space
	of     map[string]zone.Span // by volume
	unread string               // a volume that may have any of them
}

// settled calls use, while no other call takes or gives back addresses, with what is taken of them. Programs are
// asked without the lock: one that hangs holds up the call that has asked it, and no other. So the lock is taken
// when all files that are there have been asked for; one that has come meanwhile is asked for first.
func (z *Zone) settled(ctx context.Context, use func(taken) error) error {
	known := addresses{}
	for {
		if err := z.learn(ctx, known); err != nil {
			return err
		}
		if done, err := z.try(known, use); done || err != nil {
			return err
		}
	}
}

func (z *Zone) try(known addresses, use func(taken) error) (done bool, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	t, whole, err := z.takenLocked(known)
	if err != nil || !whole {
		return false, err
	}
	return true, use(t)
}

// addresses are those of files, as a call has found them since it began.
type addresses map[file]address

// file is one as it was when its inode was changed last: the number alone is used again for the next file, and one
// that has been written anew may say another address.
type file struct {
	number  uint64
	changed syscall.Timespec
}

func fileOf(st fs.FileInfo) file { return file{inode(st).Ino, inode(st).Ctim} }

type address struct {
	at    int64
	known bool // else the file may have any
}

// takenLocked is whole if all files that are there are among the known ones. It runs no program.
func (z *Zone) takenLocked(known addresses) (t taken, whole bool, err error) {
	names, err := z.names()
	if err != nil {
		return t, false, err
	}
	all := zone.Span{Base: z.config.Base, Size: z.config.Size}
	t.of = map[string]zone.Span{}
	var spans []zone.Span
	for _, name := range names {
		st, err := z.stat(name)
		if err != nil {
			return t, false, err
		}
		if st == nil {
			continue
		}
		a, ok := known[fileOf(st)]
		if !ok {
			return t, false, nil
		}
		span := zone.Span{Base: a.at, Size: st.Size()}
		if a.known {
			t.of[name] = span
		} else {
			span, t.unread = all, name
		}
		spans = append(spans, span)
	}
	for _, span := range z.made {
		spans = append(spans, span)
	}
	t.space = zone.NewSpace(all, spans)
	return t, true, nil
}

// stat is nil if there is no such volume.
func (z *Zone) stat(name string) (fs.FileInfo, error) {
	st, err := os.Stat(z.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "volume %s", name)
	}
	return st, nil
}

func inode(st fs.FileInfo) *syscall.Stat_t { return st.Sys().(*syscall.Stat_t) }

// base is the address of a file when its inode was changed last. A store through a mapping need not count as
// a change: so each look at the volume notes it, too.
type base struct {
	at      int64
	changed syscall.Timespec
}

func (z *Zone) note(st fs.FileInfo, at int64) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.bases[inode(st).Ino] = base{at, inode(st).Ctim}
}

func (z *Zone) noted(st fs.FileInfo) (b base, ok bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	b, ok = z.bases[inode(st).Ino]
	return b, ok
}

// learn finds the addresses of all files that are not among the known ones: of many that have changed by one program,
// and of what that does not tell one by one.
func (z *Zone) learn(ctx context.Context, known addresses) error {
	names, err := z.names()
	if err != nil {
		return err
	}
	if err := z.learnMany(ctx, names, known); err != nil {
		return err
	}
	return z.unknown(names, known, func(name string, st fs.FileInfo) error {
		a, there, err := z.addressOf(ctx, name, st)
		if there {
			known[fileOf(st)] = a
		}
		return err
	})
}

// unknown calls use for each file that is there, and is not among the known ones.
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
		if err := use(name, st); err != nil {
			return err
		}
	}
	return nil
}

// learnMany has those asked for by one program that addressOf would ask for one by one.
func (z *Zone) learnMany(ctx context.Context, names []string, known addresses) error {
	var changed []string
	err := z.unknown(names, known, func(name string, st fs.FileInfo) error {
		if had, ok := z.noted(st); !ok || had.changed != inode(st).Ctim {
			changed = append(changed, name)
		}
		return nil
	})
	if err != nil || len(changed) < 2 {
		return err
	}
	seen, err := z.glance(ctx, changed)
	for _, g := range seen {
		known[fileOf(g.st)] = address{int64(g.Info.Base), true}
	}
	return err
}

// addressOf asks for a file's address when the file has changed. One that cannot be read any more, for whatever
// reason, keeps what it had: a machine may have it there, and it may be restored. If it has not been read before,
// nobody knows it. It fails only where the call itself is over, so that one volume keeps nobody from the others.
func (z *Zone) addressOf(ctx context.Context, name string, st fs.FileInfo) (a address, there bool, err error) {
	had, ok := z.noted(st)
	if ok && had.changed == inode(st).Ctim {
		return address{had.at, true}, true, nil
	}
	info, err := z.tools.Info(ctx, z.path(name))
	if err == nil {
		z.note(st, int64(info.Base))
		return address{int64(info.Base), true}, true, nil
	}
	if ctx.Err() != nil {
		return a, false, fault.Wrap(fault.Internal, err, "volume %s", name)
	}
	if left, err := z.stat(name); left == nil || err != nil {
		return a, false, err // deleted meanwhile
	}
	return address{had.at, ok}, true, nil
}
