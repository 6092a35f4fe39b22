// SPDX-License-Identifier: Apache-2.0

// Package change makes settings on a guest: now, and at each boot. A record holds every former
// value. A crash at any point leaves all of the settings or none at the next boot.
package change

import (
	"fmt"
	"slices"
	"strings"

	"stargate/tune/internal/system"
)

// Kind says where a setting belongs.
type Kind string

const (
	Sysctl    Kind = "sysctl"    // Name is the key, with dots
	Attribute Kind = "attribute" // Name is a path of sysfs, and Match finds its device for udev
	Argument  Kind = "argument"  // Name is a word for the kernel's command line
)

// Setting is one change. Rule is the advice that it comes from.
type Setting struct {
	Rule  string `json:"rule"`
	Kind  Kind   `json:"kind"`
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	Match string `json:"match,omitempty"`
}

// String is the setting as a person reads it.
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

// path is the file that holds the setting's value now; nothing for a kernel argument.
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

// now reads the value that the setting has: of a file of choices the chosen one, else all of it.
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

// same says whether two texts are one value: the kernel separates numbers by tabs.
func same(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

// check refuses a setting that could not be written into a file as one line.
func (s Setting) check() error {
	for _, text := range []string{s.Name, s.Value, s.Match} {
		if strings.ContainsAny(text, "\n\r\x00") {
			return fmt.Errorf("%q is no setting: it has more than one line", text)
		}
	}
	if s.Kind == Argument && (s.Name == "" || strings.ContainsAny(s.Name, " \t\"'`$\\")) {
		return fmt.Errorf("%q is no kernel argument: it has a space or a quote", s.Name)
	}
	if s.Kind == Attribute && !strings.HasPrefix(s.Name, "/sys/") {
		return fmt.Errorf("%q is no attribute of sysfs", s.Name)
	}
	if !slices.Contains([]Kind{Sysctl, Attribute, Argument}, s.Kind) {
		return fmt.Errorf("%q is no kind of setting", s.Kind)
	}
	return nil
}
