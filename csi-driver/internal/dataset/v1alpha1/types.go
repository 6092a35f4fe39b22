// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 has the types of the API stargate.csi.dev/v1alpha1. The chart's CRD
// (charts/stargate/templates/datasets.yaml) has their schema.
package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// Names of the API.
const (
	Group    = "stargate.csi.dev"
	Version  = "v1alpha1"
	Kind     = "StargateDataset"
	Resource = "stargatedatasets"
)

// GroupVersionResource identifies the objects.
var GroupVersionResource = schema.GroupVersionResource{Group: Group, Version: Version, Resource: Resource}

// StargateDataset is a set of files that nodes fill by themselves, and of which each node has one
// copy.
type StargateDataset struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// Spec describes the files, and the nodes that may have them.
type Spec struct {
	// Size is the largest size of all files together, like 30Gi.
	Size   string `json:"size"`
	Source Source `json:"source"`
	// Digest is sha256: and the digest of the list of all files: of the lines that sha256sum
	// prints for them, sorted by name.
	Digest string `json:"digest,omitempty"`
	// NodeSelector has the labels of nodes that may have the data set.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Sealed makes the contents of the files final. The default is true.
	Sealed *bool `json:"sealed,omitempty"`
	// Fill is OnDemand, for the first pod of a node, or Ahead, on each node of the selector.
	Fill string `json:"fill,omitempty"`
	// RefreshEvery is the time after which a node looks for another version at the source, like
	// 24h. Without it, a node keeps its version.
	RefreshEvery string       `json:"refreshEvery,omitempty"`
	Credentials  *Credentials `json:"credentials,omitempty"`
}

// Values of Spec.Fill.
const (
	OnDemand = "OnDemand"
	Ahead    = "Ahead"
)

// Source names exactly one source.
type Source struct {
	HTTP *HTTP `json:"http,omitempty"`
	S3   *S3   `json:"s3,omitempty"`
	OCI  *OCI  `json:"oci,omitempty"`
}

// HTTP names files of web servers.
type HTTP struct {
	Files []HTTPFile `json:"files,omitempty"`
	// List is the URL of a list of files, as sha256sum prints it. The files are next to it.
	List string `json:"list,omitempty"`
}

// HTTPFile is one file.
type HTTPFile struct {
	URL    string `json:"url"`
	Name   string `json:"name"`
	SHA256 string `json:"sha256,omitempty"`
}

// S3 names the objects of a bucket.
type S3 struct {
	Endpoint string `json:"endpoint"`
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix,omitempty"`
	Region   string `json:"region,omitempty"`
	// List is the name of an object with a list of files, as sha256sum prints it.
	List string `json:"list,omitempty"`
}

// OCI names an artifact in a registry.
type OCI struct {
	Reference string `json:"reference"`
	PlainHTTP bool   `json:"plainHTTP,omitempty"`
}

// Credentials names a Secret in the data set's namespace.
type Credentials struct {
	SecretName string `json:"secretName"`
}

// Status has the state of each node that has a copy, or fills one.
type Status struct {
	// Nodes has the nodes by name. Each node writes only its own entry, by a merge patch, so
	// that nodes do not wait for each other.
	Nodes map[string]NodeStatus `json:"nodes,omitempty"`
}

// Values of NodeStatus.Phase.
const (
	Filling = "Filling"
	Ready   = "Ready"
	Failed  = "Failed"
)

// NodeStatus is the state of one node.
type NodeStatus struct {
	Phase          string `json:"phase"`
	Message        string `json:"message"`
	Percent        int64  `json:"percent"`
	Bytes          int64  `json:"bytes"`
	TotalBytes     int64  `json:"totalBytes"`
	BytesPerSecond int64  `json:"bytesPerSecond"`
	SecondsLeft    int64  `json:"secondsLeft"`
	Pods           int64  `json:"pods"`
	Version        string `json:"version"`
}

// Bytes returns the largest size in bytes.
func (d *StargateDataset) Bytes() (int64, error) {
	q, err := resource.ParseQuantity(d.Spec.Size)
	if err != nil || q.Sign() <= 0 || q.CmpInt64(q.Value()) != 0 {
		return 0, errkind.New(errkind.Invalid, "data set %s/%s: size %q must be a number of bytes, like 30Gi", d.Namespace, d.Name, d.Spec.Size)
	}
	if q.Value() > pool.MaxVolume {
		return 0, errkind.New(errkind.Invalid, "data set %s/%s: size %q must be at most 64Ti", d.Namespace, d.Name, d.Spec.Size)
	}
	return q.Value(), nil
}

// Tree returns the digest of the list of all files, in hexadecimal digits.
func (d *StargateDataset) Tree() string { return strings.TrimPrefix(d.Spec.Digest, "sha256:") }

// Seals reports whether the files are to be sealed.
func (d *StargateDataset) Seals() bool { return d.Spec.Sealed == nil || *d.Spec.Sealed }

// Every returns the time between two looks at the source; 0: never.
func (d *StargateDataset) Every() time.Duration {
	every, err := time.ParseDuration(d.Spec.RefreshEvery)
	if err != nil || every < time.Minute {
		return 0
	}
	return every
}

// Wanted identifies the contents that the spec names. After a change, nodes need another copy.
func (d *StargateDataset) Wanted() string {
	text, err := json.Marshal(struct {
		Source Source
		Digest string
		Sealed bool
	}{d.Spec.Source, d.Spec.Digest, d.Seals()})
	if err != nil {
		panic(err) // a Spec has only texts
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
