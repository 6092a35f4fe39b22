// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/types"

	"stargate/csi-driver/internal/pool"
)

// names is a Cluster with given PersistentVolumes of a volume.
type names struct {
	all, keep []string
	err       error
	asked     string // the name in the last query
	made      []string
}

func (n *names) Names(_ context.Context, _ pool.ID, name string) ([]string, error) {
	n.asked = name
	return n.all, n.err
}
func (n *names) Keeps(context.Context, pool.ID) ([]string, error) { return n.keep, n.err }
func (n *names) Made(volume, pv string, claim types.NamespacedName) {
	n.made = append(n.made, volume, pv, claim.String())
}

// After an upgrade, a claim may have a PersistentVolume of the older chart to which it is not bound
// yet. The driver refuses a second PersistentVolume for the same volume. It also refuses to delete
// a volume while a PersistentVolume that must remain names it.
func TestTwoNames(t *testing.T) {
	const older, newer = "pvc-stargate.csi.dev-u", "pvc-stargate.csi.dev--n1-u"
	ctx := context.Background()
	w := newWorld(t, pool.Gigabyte)
	n := &names{}
	w.driver.AskCluster(n)
	w.must(w.create(ctx, older, nil))
	id := w.made(newer) // the call returns the volume that was created under the older name
	before := w.left()
	n.all = []string{older}
	w.must(w.create(ctx, older, nil))
	w.wants("a second name", w.create(ctx, newer, nil), codes.FailedPrecondition, "has the PersistentVolume "+older+" already, and gets no second one")
	n.all, n.keep = []string{newer, older}, []string{older + " (Bound, Delete)"}
	w.wants("delete", w.delete(ctx, id), codes.FailedPrecondition, "because PersistentVolume "+older+" (Bound, Delete) names it", "Retain")
	n.all, n.keep, n.err = nil, nil, errors.New("no answer")
	w.wants("delete", w.delete(ctx, id), codes.Unavailable, "cannot be read from the cluster")
	w.wants("create", w.create(ctx, newer, nil), codes.Unavailable, "cannot be read from the cluster")
	if after := w.left(); !slices.Equal(before, after) {
		t.Errorf("the objects were %q, and are %q", before, after)
	}
	n.all, n.err = []string{newer}, nil
	w.must(w.create(ctx, newer, nil), w.delete(ctx, id))
	// If a name is too long for LVM, the zone uses a digest of it. The driver queries the
	// cluster by the name itself.
	long := "pvc-stargate.csi.dev--n1-" + strings.Repeat("u", 60)
	n.all = nil
	w.must(w.create(ctx, long, nil))
	if short := strings.Replace(long, "-n1-", "", 1); n.asked != short {
		t.Errorf("asked for %s", n.asked)
	}
}

// The driver passes the claim of a new volume to the Cluster if the request names the claim.
func TestMadeFor(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	n := &names{}
	w.driver.AskCluster(n)
	w.must(w.create(context.Background(), "pvc-1", nil))
	_, err := w.driver.CreateVolume(context.Background(), &csi.CreateVolumeRequest{Name: "pvc-stargate.csi.dev--n1-u", VolumeCapabilities: []*csi.VolumeCapability{capability},
		Parameters: map[string]string{"csi.storage.k8s.io/pvc/name": "data", "csi.storage.k8s.io/pvc/namespace": "ns"}})
	w.must(err)
	if want := []string{"pvc-stargate.csi.dev-u", "pvc-stargate.csi.dev--n1-u", "ns/data"}; !slices.Equal(n.made, want) {
		t.Errorf("%q", n.made)
	}
}
