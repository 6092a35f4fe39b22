// SPDX-License-Identifier: Apache-2.0

// Package kernelmodule reads the files in sysfs in which stargatefs.ko describes this node's
// mounted volumes (stargatefs(5)). It changes nothing.
package kernelmodule

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Sysfs is the module's folder.
const Sysfs = "/sys/fs/stargatefs"

// Module reads the module's folder, which need not exist.
type Module struct {
	dir    string
	device func(path string) string
}

// New returns a Module that reads a folder: Sysfs, except in tests.
func New(dir string) *Module { return NewFor(dir, Device) }

// NewFor returns a Module for tests, whose volumes have no devices. The function device returns the
// number for a path.
func NewFor(dir string, device func(path string) string) *Module { return &Module{dir, device} }

// Device returns the number of the block device at a path, in the format of sysfs. It returns "" if
// there is no block device.
func Device(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return ""
	}
	return fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
}

const shutDown = "shut down"

// Mount describes one mounted volume of this node.
type Mount struct {
	State    string
	Joined   bool                        // the mount has a slot, so it may write
	counters map[string]map[string]int64 // counters by the names of their file and of the counter
}

// WhyShutDown is the message about a mount that is shut down.
const WhyShutDown = "every call to this node's mount fails until the volume is unmounted here: another system has " +
	"fenced this node, or essential pages of the volume are bad (the kernel's log names them). " +
	"Delete the volume's pods on this node"

// ShutDown reports whether this system was fenced, or the volume's own structures are in bad pages.
// Every operation on the mount then fails until it is unmounted.
func (m *Mount) ShutDown() bool { return m.State == shutDown }

// Counter returns a counter of the mount, or 0 if this module does not have the counter.
func (m *Mount) Counter(file, name string) int64 { return m.counters[file][name] }

var files = []string{"epoch", "operations", "journal", "errors"}

// Mounts returns the mount of the volume on the device at a path. It returns nil if this node has
// not mounted the volume. It does not search by UUID, because any member of a volume can write
// another volume's UUID into its own volume.
type Mounts func(path string) *Mount

// None finds no mounts.
func None(string) *Mount { return nil }

// Mounted returns the mount of one volume, by the rules of Mounts.
func (m *Module) Mounted(path string) (*Mount, error) {
	device := m.device(path)
	if device == "" {
		return nil, nil
	}
	all, err := m.read(func(of string) bool { return of == device })
	return all[device], err
}

// All reads all mounts of this node once, and returns a function that finds them.
func (m *Module) All() (Mounts, error) {
	all, err := m.read(func(string) bool { return true })
	if err != nil {
		return None, err
	}
	return func(path string) *Mount { return all[m.device(path)] }, nil
}

// read returns the mounts of the wanted devices, by their numbers.
func (m *Module) read(wanted func(device string) bool) (map[string]*Mount, error) {
	entries, err := os.ReadDir(m.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("mounted volumes: %w", err)
	}
	all := map[string]*Mount{}
	for _, e := range entries {
		dir := filepath.Join(m.dir, e.Name())
		device, err := word(dir, "dev")
		if err != nil || !wanted(device) {
			continue // unmounted meanwhile, or another volume's mount
		}
		mount, err := read(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			continue // unmounted meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("mounted volumes: %w", err)
		}
		all[device] = mount
	}
	return all, nil
}

func word(dir, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(text)), err
}

func read(dir string) (*Mount, error) {
	state, err := word(dir, "state")
	if err != nil {
		return nil, err
	}
	slot, err := word(dir, "slot")
	if err != nil {
		return nil, err
	}
	m := &Mount{State: state, Joined: slot != "-1", counters: map[string]map[string]int64{}}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if m.ShutDown() && errors.Is(err, unix.EIO) {
			continue // the file describes memory that can no longer be read
		}
		if err != nil {
			return nil, err
		}
		m.counters[name] = parse(text)
	}
	return m, nil
}

// parse reads lines that consist of a name and a number. It ignores other lines, which a later
// module may write.
func parse(text []byte) map[string]int64 {
	counters := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, number, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseUint(number, 10, 63); err == nil {
			counters[name] = int64(n)
		}
	}
	return counters
}
