// SPDX-License-Identifier: Apache-2.0

// Package annotation reads the annotation in which a user names a VM's claims (D11). The VM gets
// the volumes of these claims as memory. The webhook, the hook and the node plugin all parse the
// annotation with this package.
package annotation

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Most is the largest number of claims that one VM may name.
const Most = 16

const (
	maxName = 253
	maxText = Most * (maxName + len(":ro,"))
)

// Claim is a PersistentVolumeClaim that a VM names.
type Claim struct {
	Name     string
	ReadOnly bool
}

var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// Annotation returns the annotation's key. The annotation belongs to a VirtualMachineInstance, or
// to the template of a VirtualMachine.
func Annotation(driver string) string { return driver + "/volumes" }

// Folder returns the mount point of a claim in the launcher and in the hook.
func Folder(claim string) string { return path.Join("/var/run/stargate", claim) }

// Parse reads the annotation's value: "pvc-a,pvc-b:ro".
func Parse(value string) ([]Claim, error) {
	if len(value) > maxText {
		return nil, fmt.Errorf("volumes %s: the text has %d bytes; write at most %d", quoted(value), len(value), maxText)
	}
	var all []Claim
	seen := map[string]bool{}
	for _, word := range strings.Split(value, ",") {
		word = strings.TrimSpace(word)
		claim, mode, cut := strings.Cut(word, ":")
		switch {
		case claim == "":
			return nil, fmt.Errorf("volumes %s: an empty name; write the names of claims, like data,models:ro", quoted(value))
		case cut && mode != "ro" && mode != "rw":
			return nil, fmt.Errorf("volumes %s: %s after the colon: write ro or rw", quoted(value), quoted(mode))
		case len(claim) > maxName || !name.MatchString(claim):
			return nil, fmt.Errorf("volumes %s: %s cannot be the name of a claim", quoted(value), quoted(claim))
		case seen[claim]:
			return nil, fmt.Errorf("volumes %s: claim %s is named twice", quoted(value), claim)
		case len(all) == Most:
			return nil, fmt.Errorf("volumes: a VM can have at most %d claims", Most)
		}
		seen[claim] = true
		all = append(all, Claim{Name: strings.Clone(claim), ReadOnly: mode == "ro"}) // the copy does not keep the rest of value in memory
	}
	return all, nil
}

// Of returns the claims that an object's annotations name, or nil if the annotation is missing.
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

// quoted returns s in quotes, shortened so that the error around it fits into an Event. The limit
// applies to the quoted text, because one quoted byte can take four bytes.
func quoted(s string) string {
	const most = 80
	text, rest := strconv.Quote(s[:min(len(s), most)]), len(s) > most
	for cut := min(len(s), most); len(text) > most; rest = true {
		_, length := utf8.DecodeLastRuneInString(s[:cut])
		cut -= length
		text = strconv.Quote(s[:cut])
	}
	if rest {
		return text + "..."
	}
	return text
}
