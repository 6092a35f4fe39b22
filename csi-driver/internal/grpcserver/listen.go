// SPDX-License-Identifier: Apache-2.0

// Package grpcserver serves gRPC on sockets that only root can open.
package grpcserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

func placeOf(endpoint string) (string, error) {
	path := strings.TrimPrefix(endpoint, "unix://")
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("socket %q: must be unix:// and an absolute path", endpoint)
	}
	if st, err := os.Lstat(path); err == nil && st.Mode()&fs.ModeSocket == 0 {
		return "", fmt.Errorf("socket %s: the path exists, and is not a socket", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("socket: %w", err)
	}
	return path, nil
}

// ListenAlone creates a socket in a folder where every name counts as a socket, so the socket never
// has a temporary name. The socket's mode comes from the process's umask, which this function sets.
// So no other thread may create files meanwhile.
func ListenAlone(endpoint string) (net.Listener, error) {
	path, err := placeOf(endpoint)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("socket: %w", err)
	}
	defer unix.Umask(unix.Umask(0o177))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	return l, nil
}

// named is a socket that removes its name when it is closed, unless a successor has taken the name.
// From a missing name, kubelet concludes that the driver has ended. A restarted driver keeps the
// name.
type named struct {
	net.Listener
	path string
	file fs.FileInfo
	once sync.Once
}

// Close closes the socket. It removes the name only once, because a successor's file may have the
// same inode number as the removed file.
func (n *named) Close() error {
	n.once.Do(n.takeName)
	return n.Listener.Close()
}

func (n *named) takeName() {
	if now, err := os.Lstat(n.path); err == nil && os.SameFile(now, n.file) {
		os.Remove(n.path) // a remaining file does no harm; a killed driver also leaves its file
	}
}

// Listen creates a socket, and replaces a socket that a killed driver has left. The new socket gets
// its name after its mode is set. Until then, its name begins with a dot, so that kubelet ignores
// it.
func Listen(endpoint string) (net.Listener, error) {
	path, err := placeOf(endpoint)
	if err != nil {
		return nil, err
	}
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	n := &named{Listener: l, path: path}
	if err = unix.Chmod(temporary, 0o600); err == nil {
		n.file, err = os.Lstat(temporary)
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		l.Close()
		os.Remove(temporary)
		return nil, fmt.Errorf("socket: %w", err)
	}
	return n, nil
}
