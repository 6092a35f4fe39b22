// SPDX-License-Identifier: Apache-2.0

// Package claims reads what the user of a virtual machine has written (D11): which claims it is to have
// as memory. Admission, hook and node plugin read it by this one package.
package claims

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Most is how many volumes a machine can have.
const Most = 16

const maxName = 253

// Claim is a PersistentVolumeClaim that a machine names.
type Claim struct {
	Name     string
	ReadOnly bool
}

var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// Annotation is the key, on a VirtualMachineInstance or in the template of a VirtualMachine, under which
// the claims stand.
func Annotation(driver string) string { return driver + "/volumes" }

// Folder is where launcher and hook see a claim.
func Folder(claim string) string { return path.Join("/var/run/stargate", claim) }

// Parse reads the annotation's value: "pvc-a,pvc-b:ro".
func Parse(value string) ([]Claim, error) {
	var all []Claim
	seen := map[string]bool{}
	for _, word := range strings.Split(value, ",") {
		word = strings.TrimSpace(word)
		claim, mode, cut := strings.Cut(word, ":")
		switch {
		case claim == "":
			return nil, fmt.Errorf("volumes %q: an empty name; write the names of claims, like data,models:ro", shorten(value))
		case cut && mode != "ro" && mode != "rw":
			return nil, fmt.Errorf("volumes %q: behind the colon %q: there are ro and rw", shorten(value), shorten(mode))
		case len(claim) > maxName || !name.MatchString(claim):
			return nil, fmt.Errorf("volumes %q: %q cannot be the name of a claim", shorten(value), shorten(claim))
		case seen[claim]:
			return nil, fmt.Errorf("volumes %q: claim %s is named twice", shorten(value), claim)
		case len(all) == Most:
			return nil, fmt.Errorf("volumes: more than %d claims; a machine can have as many", Most)
		}
		seen[claim] = true
		all = append(all, Claim{Name: claim, ReadOnly: mode == "ro"})
	}
	return all, nil
}

// Of reads the annotations of an object; none if it has not asked for any.
func Of(annotations map[string]string, driver string) ([]Claim, error) {
	value, asked := annotations[Annotation(driver)]
	if !asked {
		return nil, nil
	}
	all, err := Parse(value)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", Annotation(driver), err)
	}
	return all, nil
}

func shorten(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
