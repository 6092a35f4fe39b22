// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const nameMax = 63

// Prefixes of names that the driver makes of other names. No other volume has a name with one.
const (
	hashed    = "x-"
	ephemeral = "e-"
	snapshot  = "s-"
)

// provisioned begins the names that external-provisioner makes.
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

// NameFor is the name in the zone for a name in Kubernetes. It is the same name if LVM takes it, so
// that lvs and kubectl show the same.
func NameFor(name string) string {
	made := strings.HasPrefix(name, hashed) || strings.HasPrefix(name, ephemeral) || strings.HasPrefix(name, snapshot)
	if ValidName(name) && !made {
		return name
	}
	return hashed + digest(name)
}

// WithoutNode returns the name in the zone of a volume whose PersistentVolume has a node in its
// name. The chart lets external-provisioner name it `pvc-DRIVER--NODE-UID`, so that a policy can
// tell which node has made it. All volumes of a zone are of one node, and LVM's names are short:
// the zone has `pvc-DRIVER-UID`. Other names stay.
func WithoutNode(name, driver, node string) string {
	long, short := prefixes(driver, node)
	if uid, made := strings.CutPrefix(name, long); made {
		return short + uid
	}
	return name
}

// WithNode is the opposite of WithoutNode.
func WithNode(name, driver, node string) string {
	long, short := prefixes(driver, node)
	if uid, made := strings.CutPrefix(name, short); made {
		return long + uid
	}
	return name
}

func prefixes(driver, node string) (long, short string) {
	short = provisioned + driver + "-"
	return short + "-" + node + "-", short
}

// OfClaim reports whether a volume has a name of the form that Kubernetes gives to volumes of
// claims. Volumes that an operator makes manually usually have other names.
func OfClaim(name string) bool {
	return strings.HasPrefix(name, provisioned) || strings.HasPrefix(name, hashed)
}

// EphemeralName is the name of an inline volume.
func EphemeralName(id string) string { return ephemeral + digest(id) }

// Nobodys is a name that no volume has, because no inline volume has an empty id.
func Nobodys() string { return EphemeralName("") }

// IsEphemeral reports whether a name belongs to an inline volume.
func IsEphemeral(name string) bool { return strings.HasPrefix(name, ephemeral) }

// SnapshotName is the name in the zone for a snapshot's name in Kubernetes. In a zone of reserved
// memory, no volume and snapshot can have the same name.
func SnapshotName(name string) string { return snapshot + digest(name) }

// IsSnapshot reports whether a name belongs to a snapshot.
func IsSnapshot(name string) bool { return ValidName(name) && strings.HasPrefix(name, snapshot) }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:20])
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
