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

// Folder is the one that paths of requests have to be in: kubelet's.
type Folder struct {
	said, real string
	open       func(dirfd int, path string, how *unix.OpenHow) (int, error)
}

// OpenFolder takes the operator's word for it, links included.
func OpenFolder(path string) (*Folder, error) {
	if !filepath.IsAbs(path) {
		return nil, errkind.New(errkind.Invalid, "kubelet's folder %q is no absolute path", path)
	}
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, errkind.Wrap(errkind.Internal, err, "kubelet's folder")
	}
	return &Folder{said: path, real: real, open: unix.Openat2}, nil
}

// Inside is where a path of a request is, really. It is Invalid if it is not in the folder, or if a
// link is on the way: a request is not to choose what we mount over by a link that is there. The path is used by
// its name afterwards. Only root can put a link into it meanwhile: kubelet's directories are root's, and what
// a pod can write to is on no way to a path of ours (README, Security).
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

// linkless looks at the path as far as it is there. Its last part may be a mount that was declared dead, which
// answers nothing when it is entered: that is one to be unmounted, and whoever cannot look at it can do that.
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
		case (err == unix.EIO || err == unix.ESTALE) && below == whole: // links are found before it is entered
		case err == unix.ELOOP || err == unix.EXDEV || err == unix.ENOTDIR:
			return errkind.New(errkind.Invalid, "path %q in %s leads through a link, or through what is no directory", below, f.said)
		default:
			return errkind.Wrap(errkind.Internal, err, "path %s in %s", below, f.said)
		}
	}
	return nil
}

// MakeDir makes the last part of a path; what is in front of it is kubelet's to make.
func MakeDir(path string) error {
	if err := os.Mkdir(path, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return errkind.Wrap(errkind.Internal, err, "directory to mount at")
	}
	st, err := os.Lstat(path)
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "directory to mount at")
	}
	if !st.IsDir() {
		return errkind.New(errkind.Exists, "%s is there, and is no directory", path)
	}
	return nil
}

// DirThere tells whether MakeDir's directory is there; one that cannot be looked at may be.
func DirThere(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// RemoveDir removes an empty directory, or none.
func RemoveDir(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errkind.Wrap(errkind.Internal, err, "directory that was mounted at")
	}
	return nil
}
