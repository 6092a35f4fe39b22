// SPDX-License-Identifier: Apache-2.0

package stargatectl

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Address is a physical address. In JSON it is a string like "0x400000000".
type Address uint64

// UnmarshalJSON parses an address.
func (a *Address) UnmarshalJSON(b []byte) error {
	s, err := strconv.Unquote(string(b))
	if err != nil {
		return fmt.Errorf("address %s: %w", b, err)
	}
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if n > math.MaxInt64 {
		return fmt.Errorf("address %s: no volume can be there", s)
	}
	*a = Address(n)
	return nil
}

// MarshalJSON writes the address in the same format as the tools.
func (a Address) MarshalJSON() ([]byte, error) { return []byte(strconv.Quote(a.String())), nil }

func (a Address) String() string { return "0x" + strconv.FormatUint(uint64(a), 16) }

// Info is the output of `stargatectl info`.
type Info struct {
	UUID       string  `json:"uuid"`
	Label      string  `json:"label"`
	State      string  `json:"state"`
	Base       Address `json:"base"`
	Size       int64   `json:"size"`
	MaxSize    int64   `json:"max_size"`
	HostSplice bool    `json:"host_splice"`
	Data       string  `json:"data"`
	LeaseMS    int64   `json:"lease_ms"`
	Errors     int64   `json:"errors"`
}

// DataAtomic reports whether each write to the volume's files is atomic, which was set when the
// volume was created.
func (i Info) DataAtomic() bool { return i.Data == "atomic" }

// Info reads the superblock of the volume in a file or device.
func (t *Tools) Info(ctx context.Context, path string) (Info, error) {
	var info Info
	err := t.json(ctx, &info, t.limit, "info", path)
	return info, err
}

// Space is the output of `stargatectl df`.
type Space struct {
	Size        int64 `json:"size"`
	Used        int64 `json:"used"`
	Free        int64 `json:"free"`
	LargestFree int64 `json:"largest_free"`
	InodesUsed  int64 `json:"inodes_used"`
	Inodes      int64 `json:"inodes"`
}

// Space reads the use of the volume in a file or device.
func (t *Tools) Space(ctx context.Context, path string) (Space, error) {
	var space Space
	err := t.json(ctx, &space, t.limit, "df", path)
	return space, err
}

// Glance is the result of `stargatectl look` for one of many volumes. It is nil if the volume
// cannot be read; Info then returns the reason.
type Glance struct {
	Path  string `json:"path"`
	Info  *Info  `json:"info"`
	Space Space  `json:"space"`
	Taken int    `json:"taken"`
}

// mostPaths is the largest number of paths that Look passes to one run of stargatectl.
const mostPaths = 4096

// Look examines many volumes with few runs of stargatectl. It returns the readable volumes by path.
func (t *Tools) Look(ctx context.Context, paths []string) (map[string]Glance, error) {
	seen := map[string]Glance{}
	for some := range slices.Chunk(paths, mostPaths) {
		var shown struct {
			Volumes []json.RawMessage `json:"volumes"`
		}
		if err := t.json(ctx, &shown, t.limit, append([]string{"look"}, some...)...); err != nil {
			return nil, err
		}
		for _, text := range shown.Volumes {
			// A volume's members write its counters. An invalid counter affects only
			// that volume.
			var g Glance
			if json.Unmarshal(text, &g) == nil && g.Info != nil {
				seen[g.Path] = g
			}
		}
	}
	return seen, nil
}

// System is a system that uses a volume, in the output of `stargatectl systems`.
type System struct {
	Slot        int    `json:"slot"`
	Incarnation int64  `json:"incarnation"`
	Name        string `json:"name"`
	Kind        string `json:"kind"`
	Machine     string `json:"machine"`
	State       string `json:"state"`
	Guarded     bool   `json:"guarded"`
	Behind      int64  `json:"behind"`
	HeldUp      int64  `json:"held_up"`
	Open        int64  `json:"open"`
}

// Lives reports whether the system must count as live: its heartbeat moves, or a guard that would
// notice its end confirms that it lives.
func (s System) Lives() bool { return s.State == "alive" || s.Guarded }

// Systems returns the systems that use a volume. If there are any, it watches their heartbeats for
// one to two seconds.
func (t *Tools) Systems(ctx context.Context, path string) ([]System, error) {
	var table struct {
		Systems []System `json:"systems"`
	}
	err := t.json(ctx, &table, t.limit, "systems", path)
	return table.Systems, err
}

// Silent reports whether the system counts as live although its heartbeat has stopped.
func (s System) Silent() bool { return s.State == "silent" || s.State == "suspected" }

// Slot is a used slot of the mount table.
type Slot struct {
	Slot        int    `json:"slot"`
	Incarnation int64  `json:"incarnation"`
	Machine     string `json:"machine"`
	State       string `json:"state"`
}

// Dead reports whether the slot's system has already been fenced. Only its recovery is then
// missing.
func (s Slot) Dead() bool { return s.State == "dead" || s.State == "recovering" }

// Slots returns the used slots. It does not check heartbeats.
func (t *Tools) Slots(ctx context.Context, path string) ([]Slot, error) {
	var table struct {
		Slots []Slot `json:"slots"`
	}
	err := t.json(ctx, &table, t.limit, "slots", path)
	return table.Slots, err
}

// Fence fences a system, but not a later system in the same slot. The caller must know that the
// system's VM stores nothing more.
func (t *Tools) Fence(ctx context.Context, path string, s System) error {
	_, err := t.Run(ctx, Ctl, "systems", path, "fence", fmt.Sprintf("%d/%d", s.Slot, s.Incarnation), "--force")
	return err
}
