// SPDX-License-Identifier: Apache-2.0

package pool

import "strings"

const (
	behind      = "@" // no name contains it
	identityLen = 16
)

// ID identifies a volume or snapshot in Kubernetes. It contains the object's name, and its zone or
// its folder of snapshots. IDs of earlier drivers contain only the name.
type ID struct{ Name, Zone string }

// Folder replaces the kind of a zone in identities of folders of snapshots.
const Folder Kind = "folder"

// Identity returns the identity of a zone or folder. It differs from that of all other zones and
// folders, also of an earlier one with the same name and node. It is computed from unique values;
// without them it is "".
func Identity(kind Kind, own string) string {
	if own == "" {
		return ""
	}
	return digest(string(kind) + ":" + own)[:identityLen]
}

// ParseID parses an id. ok is false if the text cannot be the id of a volume or snapshot in a zone.
func ParseID(s string) (id ID, ok bool) {
	name, in, two := strings.Cut(s, behind)
	if !ValidName(name) || two && (len(in) != identityLen || strings.Trim(in, "0123456789abcdef") != "") {
		return ID{}, false
	}
	return ID{name, in}, true
}

// NameOf returns the name in an id. It returns a text that is no id unchanged.
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

// Elsewhere reports whether the object is certainly in another zone than the given zone.
func (id ID) Elsewhere(zone string) bool { return id.Zone != "" && zone != "" && id.Zone != zone }

// ID returns the volume's id.
func (v Volume) ID() string { return ID{v.Name, v.Zone}.String() }

// ID returns the snapshot's id.
func (s Snapshot) ID() string { return ID{s.Name, s.Zone}.String() }
