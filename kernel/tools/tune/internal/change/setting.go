// SPDX-License-Identifier: Apache-2.0

// Package change makes settings on a guest, immediately and at each boot. A record holds every
// former value. After a crash at any point, the next boot has all settings or none.
package change

import (
	"fmt"
	"slices"
	"strings"

	"stargate/tune/internal/system"
)

// Kind is the place where a setting is stored.
type Kind string

const (
	Sysctl    Kind = "sysctl"    // Name is the key, with dots
	Attribute Kind = "attribute" // Name is a path of sysfs, and Match finds its device for udev
	Argument  Kind = "argument"  // Name is a word for the kernel's command line
)

// Setting is one change. Rule is the rule that advised it.
type Setting struct {
	Rule  string `json:"rule"`
	Kind  Kind   `json:"kind"`
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	Match string `json:"match,omitempty"`
}

// String returns the setting as text for a user.
func (s Setting) String() string {
	switch s.Kind {
	case Argument:
		return "kernel argument " + s.Name
	case Sysctl:
		return "sysctl " + s.Name + " = " + s.Value
	default:
		return s.Name + " = " + s.Value
	}
}

// path returns the file that holds the setting's present value, or nothing for a kernel argument.
func (s Setting) path() string {
	switch s.Kind {
	case Sysctl:
		return "/proc/sys/" + strings.ReplaceAll(s.Name, ".", "/")
	case Attribute:
		return s.Name
	default:
		return ""
	}
}

// now reads the setting's present value. In a file of choices it is the chosen word, otherwise the
// complete content.
func (s Setting) now(sys system.System) (string, bool) {
	text, err := sys.Read(s.path())
	if err != nil {
		return "", false
	}
	if strings.Contains(text, "[") {
		chosen, _ := sys.Chosen(s.path())
		return chosen, true
	}
	return strings.TrimSpace(text), true
}

// same reports whether two texts mean the same value. The kernel separates numbers by tabs.
func same(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

// check refuses a setting that does not fit on one line of a file.
func (s Setting) check() error {
	for _, text := range []string{s.Name, s.Value, s.Match} {
		if strings.ContainsAny(text, "\n\r\x00") {
			return fmt.Errorf("%q is not a setting: it has more than one line", text)
		}
	}
	if s.Kind == Argument && (s.Name == "" || strings.ContainsAny(s.Name, " \t\"'`$\\")) {
		return fmt.Errorf("%q is not a kernel argument: it has a space or a quote", s.Name)
	}
	if s.Kind == Attribute && !strings.HasPrefix(s.Name, "/sys/") {
		return fmt.Errorf("%q is not an attribute of sysfs", s.Name)
	}
	if !slices.Contains([]Kind{Sysctl, Attribute, Argument}, s.Kind) {
		return fmt.Errorf("%q is not a kind of setting", s.Kind)
	}
	return nil
}
