// SPDX-License-Identifier: Apache-2.0

package pool

import "strings"

const (
	behind      = "@" // occurs in no name
	identityLen = 16
)

// ID is the name of a volume or snapshot in Kubernetes: its own name, and its zone, or its folder
// of snapshots. IDs of earlier drivers are names alone.
type ID struct{ Name, Zone string }

// Folder takes the place of a kind in identities of folders of snapshots.
const Folder Kind = "folder"

// Identity distinguishes a zone, or a folder, from all others, also from an earlier one of the same
// name and node. It is made of unique values; "" if there are none.
func Identity(kind Kind, own string) string {
	if own == "" {
		return ""
	}
	return digest(string(kind) + ":" + own)[:identityLen]
}

// ParseID parses an id. ok is false for a text that cannot be the id of a volume or snapshot in a
// zone.
func ParseID(s string) (id ID, ok bool) {
	name, in, two := strings.Cut(s, behind)
	if !ValidName(name) || two && (len(in) != identityLen || strings.Trim(in, "0123456789abcdef") != "") {
		return ID{}, false
	}
	return ID{name, in}, true
}

// NameOf is the name in an id. A text that is no id is returned unchanged.
func NameOf(s string) string {
	if id, ok := ParseID(s); ok {
		return id.Name
	}
	return s
}

func (id ID) String() string {
	if id.Zone == "" {
		return id.Name
	}
	return id.Name + behind + id.Zone
}

// Elsewhere reports whether the object is known to be in another zone than the given one.
func (id ID) Elsewhere(zone string) bool { return id.Zone != "" && zone != "" && id.Zone != zone }

// ID is the volume's.
func (v Volume) ID() string { return ID{v.Name, v.Zone}.String() }

// ID is the snapshot's.
func (s Snapshot) ID() string { return ID{s.Name, s.Zone}.String() }
