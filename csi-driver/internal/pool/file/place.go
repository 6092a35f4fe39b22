// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/folder"
	"stargate/csi-driver/internal/pool"
)

// placed returns the span of a volume, which the driver has stored in a link next to the file.
// Members have the file as memory: they can write the address in its superblock, and change its
// length. So the content of a file must not affect the addresses of other volumes. A volume of an
// earlier driver has no stored place yet.
func (z *Zone) placed(name string) (at pool.Span, ok bool, err error) {
	text, err := os.Readlink(z.folder.Path(place, name))
	if errors.Is(err, fs.ErrNotExist) {
		return at, false, nil
	}
	if err != nil {
		return at, false, errkind.Wrap(errkind.Internal, err, "volume %s", name)
	}
	if n, err := fmt.Sscanf(text, "0x%x+0x%x", &at.Base, &at.Size); n != 2 || err != nil {
		return pool.Span{}, false, nil // the driver writes an invalid place again
	}
	return at, true, nil
}

// put stores a volume's place, and replaces the place stored before. The caller must have locked
// the volume (folder.Begin).
func (z *Zone) put(name string, at pool.Span) error {
	made := z.folder.Path(folder.Making, name+"@place")
	err := folder.Remove(made)
	if err == nil {
		err = os.Symlink(fmt.Sprintf("0x%x+0x%x", at.Base, at.Size), made)
	}
	if err == nil {
		err = os.Rename(made, z.folder.Path(place, name))
	}
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", name)
	}
	return nil
}

// adopt stores the place of a volume that an earlier driver has created, or that an operator has
// copied to the zone. It does so only once.
func (z *Zone) adopt(name string, st fs.FileInfo, base int64) error {
	end, err := z.folder.Begin(name)
	if err != nil {
		return nil // another call has locked the volume: the next read retries
	}
	defer end()
	now, err := z.stat(name)
	if err != nil || now == nil || !os.SameFile(now, st) {
		return err
	}
	if _, noted, err := z.placed(name); noted || err != nil {
		return err
	}
	return z.put(name, pool.Span{Base: base, Size: st.Size()})
}

// stretched returns the reason not to examine a file that is longer than its volume. A read of the
// file's holes would allocate memory, to which the member that extended the file has no right.
func stretched(length, own int64) string {
	return fmt.Sprintf("its file has %d bytes, which is longer than the volume (%d bytes): a pod or VM that maps the file has extended it. Truncate the file to the volume's size, or delete the volume", length, own)
}

// elsewhere returns the reason not to use a volume whose superblock has another address than its
// stored place.
func elsewhere(says, own int64) string {
	return fmt.Sprintf("its superblock has address %#x, and the driver gave the volume %#x: a pod or VM that maps the volume has changed the superblock. Restore the superblock, or delete the volume", says, own)
}

// longer reports whether a volume's file is longer than the size in its stored place.
func (z *Zone) longer(name string) (bool, error) {
	at, noted, err := z.placed(name)
	if err != nil || !noted {
		return false, err
	}
	st, err := z.stat(name)
	return st != nil && st.Size() > at.Size, err
}
