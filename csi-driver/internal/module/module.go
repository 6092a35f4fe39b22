// SPDX-License-Identifier: Apache-2.0

// Package module reads what stargatefs.ko shows of the volumes that this node has mounted
// (stargatefs(5), sysfs). It changes nothing.
package module

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

// Sysfs is where the module shows them.
const Sysfs = "/sys/fs/stargatefs"

// Module is the kernel's side, which need not be there.
type Module struct{ dir string }

// New reads in a folder: Sysfs, unless a test has another.
func New(dir string) *Module { return &Module{dir} }

const shutDown = "shut down"

// Mount is one volume of this node.
type Mount struct {
	State    string
	Joined   bool                        // it has a slot, as who writes has
	counters map[string]map[string]int64 // by file and name
}

// WhyShutDown is what is known of such a mount.
const WhyShutDown = "this node's mount of it fails whatever it is asked, until it is unmounted " +
	"with the volume's last pod here: another system has declared this node dead, or the " +
	"volume itself stands on bad memory; the kernel's log says which"

// ShutDown is a mount of a system that another one has declared dead, or of a volume that itself stands on bad
// memory: whatever is asked of it fails until it has been unmounted.
func (m *Mount) ShutDown() bool { return m.State == shutDown }

// Counter is 0 where this module has none of that name.
func (m *Mount) Counter(file, name string) int64 { return m.counters[file][name] }

var files = []string{"epoch", "operations", "journal", "errors"}

// Mounted finds a volume by its UUID; nil: this node has not mounted it.
func (m *Module) Mounted(uuid string) (*Mount, error) {
	entries, err := os.ReadDir(m.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("mounted volumes: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(m.dir, e.Name())
		found, err := word(dir, "uuid")
		if err != nil || found != uuid {
			continue // unmounted meanwhile, or another one
		}
		mount, err := read(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil, nil // unmounted meanwhile
		}
		return mount, err
	}
	return nil, nil
}

// All are the volumes that this node has mounted, by their UUIDs: who asks about many reads each once.
func (m *Module) All() (map[string]*Mount, error) {
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
		uuid, err := word(dir, "uuid")
		if err != nil {
			continue // unmounted meanwhile, or no volume
		}
		mount, err := read(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			continue // unmounted meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("mounted volumes: %w", err)
		}
		all[uuid] = mount
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
			continue // it is about memory that cannot be read any more
		}
		if err != nil {
			return nil, err
		}
		m.counters[name] = parse(text)
	}
	return m, nil
}

// parse takes lines of a name and a number; what is none is of a later module.
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
