// SPDX-License-Identifier: Apache-2.0

package change

import (
	"slices"
	"strings"
)

// State is a setting of the record, with its present value.
type State struct {
	Setting
	Old string `json:"former"`
	Now string `json:"now"`
	// Word is "applied", "after the next boot", "changed since", or "gone".
	Word string `json:"state"`
}

// Status describes the applied settings.
type Status struct {
	Phase   string   `json:"phase"` // "none" if nothing is applied
	States  []State  `json:"settings"`
	Files   []string `json:"files"`
	Changed []string `json:"changed_files"`
}

// Status returns the state of the applied settings. It changes nothing.
func (c *Changer) Status() (*Status, error) {
	r, err := load(c.Sys)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return &Status{Phase: "none"}, nil
	}
	s := &Status{Phase: string(r.Phase), Changed: c.changed(r)}
	given := strings.Fields(c.Sys.Text("/proc/cmdline"))
	for _, one := range r.Values {
		state := State{Setting: one.Setting, Old: one.Old, Word: "applied"}
		now, there := "", true
		if one.Kind == Argument {
			if !slices.Contains(given, one.Name) {
				state.Word = "after the next boot"
			}
		} else if now, there = one.now(c.Sys); !there {
			state.Word = "gone"
		} else if !same(now, one.Value) {
			state.Word = "changed since"
		}
		state.Now = now
		s.States = append(s.States, state)
	}
	for _, one := range r.Files {
		s.Files = append(s.Files, one.Path)
	}
	return s, nil
}
