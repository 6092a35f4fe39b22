// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"stargate/csi-driver/internal/errkind"
)

// Folder is the folder that must contain paths of requests: kubelet's.
type Folder struct {
	said, real string
	open       func(dirfd int, path string, how *unix.OpenHow) (int, error)
}

// OpenFolder opens the folder. It trusts the operator's path, which may contain links.
func OpenFolder(path string) (*Folder, error) {
	if !filepath.IsAbs(path) {
		return nil, errkind.New(errkind.Invalid, "kubelet's folder %q is not an absolute path", path)
	}
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, errkind.Wrap(errkind.Internal, err, "kubelet's folder")
	}
	return &Folder{said: path, real: real, open: unix.Openat2}, nil
}

// Inside checks a path of a request. It fails with Invalid if the path is not in the folder, or
// leads through a link. An existing link must not decide where the driver mounts. Later, the driver
// uses the path by its name. Only root can put a link into the path meanwhile. The reason is that
// kubelet's directories belong to root, and no path of the driver leads through a directory that a
// pod can write to (README, Security).
func (f *Folder) Inside(path string) (string, error) {
	below, ok := strings.CutPrefix(path, f.said+"/")
	if !ok || filepath.Clean(path) != path || strings.ContainsAny(path, " \t\n\\") {
		return "", errkind.New(errkind.Invalid, "path %q is not in %s, or is not in its simplest form", path, f.said)
	}
	if err := f.linkless(below); err != nil {
		return "", err
	}
	return filepath.Join(f.real, below), nil
}

// linkless checks that the existing part of the path contains no links. The last part of the path
// may be the mount of a fenced system, in which every access fails. The driver must still be able
// to unmount it, so the check does not access this file system.
func (f *Folder) linkless(whole string) error {
	root, err := unix.Open(f.real, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "kubelet's folder %s", f.said)
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS}
	for below := whole; below != "."; below = filepath.Dir(below) {
		fd, err := f.open(root, below, &how)
		switch {
		case err == nil:
			unix.Close(fd)
			return nil
		case err == unix.ENOENT:
		case (err == unix.EIO || err == unix.ESTALE) && below == whole: // the open finds a link before it enters the last part
		case err == unix.ELOOP || err == unix.EXDEV || err == unix.ENOTDIR:
			return errkind.New(errkind.Invalid, "path %q in %s leads through a link, or through a file that is not a directory", below, f.said)
		default:
			return errkind.Wrap(errkind.Internal, err, "path %s in %s", below, f.said)
		}
	}
	return nil
}

// MakeDir creates the last part of a path; kubelet creates the parts before it. The directory may
// be the mount of a server that does not answer, so MakeDir does not access its file system.
func MakeDir(path string) error {
	if err := os.Mkdir(path, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return errkind.Wrap(errkind.Internal, err, "directory to mount at")
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return errkind.New(errkind.Exists, "%s exists, and is not a directory", path)
	}
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "directory to mount at %s", path)
	}
	unix.Close(fd)
	return nil
}

// DirThere reports whether MakeDir's directory exists. If the directory cannot be examined,
// DirThere returns true.
func DirThere(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// RemoveDir removes an empty directory. It succeeds if the directory does not exist.
func RemoveDir(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errkind.Wrap(errkind.Internal, err, "directory that was mounted at")
	}
	return nil
}
