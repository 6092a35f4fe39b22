// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	nameMax   = 63
	digestLen = 20 // bytes
)

// Prefixes of names that the driver derives from other names. No other volume has a name with such
// a prefix.
const (
	hashed    = "x-"
	ephemeral = "e-"
	snapshot  = "s-"
	dataset   = "ds-"
)

// provisioned is the prefix of the names that external-provisioner creates.
const provisioned = "pvc-"

// ValidName reports whether stargatectl accepts a name. A name has 1 to 63 letters, digits, dots
// and dashes, begins with a letter or digit, and is not reserved by LVM.
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

// NameFor returns the name in the zone for a name in Kubernetes. It is the same name if LVM accepts
// it, so that lvs and kubectl show the same name.
func NameFor(name string) string {
	made := strings.HasPrefix(name, hashed) || strings.HasPrefix(name, ephemeral) || strings.HasPrefix(name, snapshot) || IsDataset(name)
	if ValidName(name) && !made {
		return name
	}
	return hashed + digest(name)
}

// WithoutNode returns the name in the zone of a volume whose PersistentVolume has a node in its
// name. The chart makes external-provisioner use names like `pvc-DRIVER--NODE-UID`, so that a
// policy can check which node has created a PersistentVolume. All volumes of a zone are on one
// node, and LVM limits the length of names. So the name in the zone is `pvc-DRIVER-UID`. Other
// names do not change.
func WithoutNode(name, driver, node string) string {
	long, short := prefixes(driver, node)
	if uid, made := strings.CutPrefix(name, long); made {
		return short + uid
	}
	return name
}

// WithNode reverses WithoutNode.
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

// EphemeralName returns the name of an inline volume.
func EphemeralName(id string) string { return ephemeral + digest(id) }

// Nobodys returns a name that no volume has: the name of an inline volume with an empty id.
func Nobodys() string { return EphemeralName("") }

// IsEphemeral reports whether a name belongs to an inline volume.
func IsEphemeral(name string) bool { return strings.HasPrefix(name, ephemeral) }

// DatasetName returns the name of the volume with a node's copy of a data set. The UID identifies
// the data set, and the version its contents.
func DatasetName(uid, version string) string { return dataset + digest(uid+"/"+version) }

// IsDataset reports whether a name belongs to a copy of a data set.
func IsDataset(name string) bool {
	digits, ok := strings.CutPrefix(name, dataset)
	return ok && len(digits) == 2*digestLen && strings.Trim(digits, "0123456789abcdef") == ""
}

// SnapshotName returns the name in the zone for a snapshot's name in Kubernetes. In a zone of
// reserved memory, a volume and a snapshot cannot have the same name.
func SnapshotName(name string) string { return snapshot + digest(name) }

// IsSnapshot reports whether a name belongs to a snapshot.
func IsSnapshot(name string) bool { return ValidName(name) && strings.HasPrefix(name, snapshot) }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:digestLen])
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
