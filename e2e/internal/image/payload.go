// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"stargate/e2e/internal/agent"
)

// Payload maps paths inside the guest to files or folders of this host.
type Payload map[string]string

// A payload's size is a multiple of diskUnit.
const diskUnit = 64 << 10

// Write writes the payload as a tar archive, which a guest reads from a disk.
func (p Payload) Write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	archive := tar.NewWriter(f)
	for inside, outside := range p {
		if err := add(archive, outside, inside); err != nil {
			return fmt.Errorf("copying %s into the guests: %w", outside, err)
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	// A disk has whole sectors, and the kernel searches it for partitions.
	if err := f.Truncate((size + diskUnit) &^ (diskUnit - 1)); err != nil {
		return err
	}
	return f.Close()
}

// add adds a file or a folder. If the path itself is a symbolic link, add follows it. It does not
// follow links inside a folder.
func add(archive *tar.Writer, outside, inside string) error {
	root, err := filepath.EvalSymlinks(outside)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return addOne(archive, path, filepath.Join(inside, name))
	})
}

func addOne(archive *tar.Writer, path, name string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&os.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	} else if !info.Mode().IsRegular() && !info.IsDir() {
		return nil // sockets and other special files have no content to copy
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name, header.Format = name, tar.FormatPAX
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	if info.Mode().IsRegular() {
		return addFile(archive, path, header)
	}
	return archive.WriteHeader(header)
}

// addFile adds each extent of a file as an entry with its offset in the file. So holes cost
// nothing.
func addFile(archive *tar.Writer, path string, header *tar.Header) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	size := header.Size
	for at := int64(0); ; {
		end, next, err := piece(f, at, size)
		if err != nil {
			return err
		}
		header.Size = end - at
		header.PAXRecords = map[string]string{agent.PieceAt: fmt.Sprint(at), agent.PieceOf: fmt.Sprint(size)}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(archive, io.NewSectionReader(f, at, end-at)); err != nil {
			return err
		}
		if next >= size {
			return nil
		}
		at = next
	}
}
