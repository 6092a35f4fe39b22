// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// A payload stores files as extents, so that holes take no space. Each extent is one entry of the
// archive, with these records. The first extent of a file has the offset 0.
const (
	PieceAt = "STARGATE.at" // offset of the extent in the file
	PieceOf = "STARGATE.of" // size of the complete file
)

// Unpack unpacks a payload into a root. The payload is a tar archive on its own disk.
func Unpack(disk, root string) error {
	f, err := os.Open(disk)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	archive := tar.NewReader(f)
	for {
		header, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("payload: %w", err)
		}
		if err := unpackOne(archive, header, filepath.Join(root, header.Name)); err != nil {
			return fmt.Errorf("payload: %s: %w", header.Name, err)
		}
	}
}

func unpackOne(archive io.Reader, header *tar.Header, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(header.Mode).Perm()
	switch header.Typeflag {
	case tar.TypeDir:
		if err := os.MkdirAll(path, mode); err != nil {
			return err
		}
		return os.Chmod(path, mode)
	case tar.TypeSymlink:
		return os.Symlink(header.Linkname, path)
	case tar.TypeReg:
		if err := unpackPiece(archive, header, path); err != nil {
			return err
		}
		return os.Chtimes(path, header.ModTime, header.ModTime)
	}
	return fmt.Errorf("unexpected type %q", header.Typeflag)
}

func unpackPiece(archive io.Reader, header *tar.Header, path string) error {
	at, err := strconv.ParseInt(header.PAXRecords[PieceAt], 10, 64)
	if err != nil {
		return err
	}
	size, err := strconv.ParseInt(header.PAXRecords[PieceOf], 10, 64)
	if err != nil {
		return err
	}
	flags := os.O_CREATE | os.O_WRONLY
	if at == 0 {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, os.FileMode(header.Mode).Perm())
	if err != nil {
		return err
	}
	if err = f.Truncate(size); err == nil {
		_, err = f.Seek(at, io.SeekStart)
	}
	if err == nil {
		_, err = io.Copy(f, archive)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
