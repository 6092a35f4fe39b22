// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const nameMax = 63

// Names that the driver makes of others' begin so; no other volume's does.
const (
	hashed    = "x-"
	ephemeral = "e-"
	snapshot  = "s-"
)

// What external-provisioner's names begin with.
const provisioned = "pvc-"

// ValidName is stargatectl's rule: 1 to 63 letters, digits, dots and dashes, the first a letter or
// digit, and none of LVM's own.
func ValidName(name string) bool {
	if name == "" || len(name) > nameMax || strings.HasPrefix(name, "snapshot") || strings.HasPrefix(name, "pvmove") {
		return false
	}
	for i, c := range []byte(name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '-') {
			return false
		}
	}
	return true
}

// NameFor is what a volume that the user calls so is called in the zone. It is the same name where
// that can be, so that lvs shows what kubectl shows.
func NameFor(name string) string {
	made := strings.HasPrefix(name, hashed) || strings.HasPrefix(name, ephemeral) || strings.HasPrefix(name, snapshot)
	if ValidName(name) && !made {
		return name
	}
	return hashed + digest(name)
}

// OfClaim reports whether a volume has a name of the form that Kubernetes gives to volumes of
// claims. Volumes that an operator makes manually usually have other names.
func OfClaim(name string) bool {
	return strings.HasPrefix(name, provisioned) || strings.HasPrefix(name, hashed)
}

// EphemeralName is that of a volume that lives as long as a pod.
func EphemeralName(id string) string { return ephemeral + digest(id) }

// Nobodys is a name that no volume has: an inline volume's name is made of an id.
func Nobodys() string { return EphemeralName("") }

// IsEphemeral tells whether a volume is one of these.
func IsEphemeral(name string) bool { return strings.HasPrefix(name, ephemeral) }

// SnapshotName is that of a snapshot that the user calls so. In a zone of reserved memory volumes and
// snapshots share their names.
func SnapshotName(name string) string { return snapshot + digest(name) }

// IsSnapshot tells whether a name is one of these.
func IsSnapshot(name string) bool { return ValidName(name) && strings.HasPrefix(name, snapshot) }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:20])
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
