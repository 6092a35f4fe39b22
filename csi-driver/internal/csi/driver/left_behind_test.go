// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// leftBehind is a zone in which a tool of an earlier driver finishes just before this driver starts
// the same tool. The requested object then already exists, and the driver must not create it again.
type leftBehind struct {
	strict
	size int64 // size of the volume that exists then
	done bool
}

func (l *leftBehind) end() error {
	l.done = true
	return errkind.New(errkind.Exists, "exists already")
}

func (l *leftBehind) Get(ctx context.Context, name string) (pool.Volume, error) {
	if l.done && name == "new" {
		return pool.Volume{Name: name, State: pool.Ready, Path: "/zone/new", Size: l.size, Alignment: pool.Extent}, nil
	}
	return l.strict.Get(ctx, name)
}

func (l *leftBehind) Create(context.Context, pool.Spec) (pool.Volume, error) {
	return pool.Volume{}, l.end()
}

func (l *leftBehind) Snapshot(ctx context.Context, of pool.ID) (pool.Snapshot, error) {
	if l.done {
		return pool.Snapshot{Name: of.Name, Source: "v", Size: pool.Gigabyte}, nil
	}
	return l.strict.Snapshot(ctx, of)
}

func (l *leftBehind) TakeSnapshot(context.Context, string, pool.Volume, pool.Target) (pool.Snapshot, error) {
	return pool.Snapshot{}, l.end()
}

func TestLeftoverIsFound(t *testing.T) {
	at := func(size int64) *Driver {
		return New(request.Config{Name: "d", NodeID: "n", DefaultSize: pool.Gigabyte}, &leftBehind{strict: strict{t: t}, size: size}, nil, nil, nil)
	}
	r := &csi.CreateVolumeRequest{
		Name: "new", CapacityRange: &csi.CapacityRange{RequiredBytes: pool.Gigabyte, LimitBytes: pool.Gigabyte},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
	}
	made, err := at(pool.Gigabyte).CreateVolume(context.Background(), r)
	if err != nil || made.GetVolume().GetCapacityBytes() != pool.Gigabyte {
		t.Errorf("CreateVolume of a volume that an earlier tool has completed: %v, %v", made, err)
	}
	if _, err := at(2*pool.Gigabyte).CreateVolume(context.Background(), r); status.Code(grpcstatus.Of(err)) != codes.AlreadyExists {
		t.Errorf("an existing volume with another size: %v", err)
	}
	taken, err := at(0).CreateSnapshot(context.Background(), &csi.CreateSnapshotRequest{Name: "new", SourceVolumeId: "v"})
	if err != nil || taken.GetSnapshot().GetSourceVolumeId() != "v" {
		t.Errorf("CreateSnapshot of a snapshot that an earlier tool has completed: %v, %v", taken, err)
	}
}

// deaf is a zone that does not answer.
type deaf struct {
	strict
	kind errkind.Kind
}

func (z deaf) err() error { return errkind.New(z.kind, "no word") }

func (z deaf) Get(context.Context, string) (pool.Volume, error)       { return pool.Volume{}, z.err() }
func (z deaf) Status(context.Context) (pool.Status, error)            { return pool.Status{}, z.err() }
func (z deaf) Create(context.Context, pool.Spec) (pool.Volume, error) { return pool.Volume{}, z.err() }

// The driver sends a claim to another node only if this node has no zone. A zone that does not
// answer may have the volume.
func TestWithoutAnAnswer(t *testing.T) {
	for kind, want := range map[errkind.Kind]codes.Code{errkind.NoZone: codes.ResourceExhausted, errkind.NoAnswer: codes.Unavailable} {
		d := New(request.Config{Name: "d", NodeID: "n", DefaultSize: pool.Gigabyte}, deaf{strict{t: t}, kind}, nil, nil, nil)
		_, err := d.CreateVolume(context.Background(), &csi.CreateVolumeRequest{
			Name: "new", VolumeCapabilities: []*csi.VolumeCapability{{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			}},
		})
		if got := status.Code(grpcstatus.Of(err)); got != want {
			t.Errorf("kind %d: %v", kind, err)
		}
		res, err := d.GetCapacity(context.Background(), &csi.GetCapacityRequest{})
		if kind == errkind.NoZone && (err != nil || res.GetMaximumVolumeSize().GetValue() != 0) || kind == errkind.NoAnswer && err == nil {
			t.Errorf("kind %d: capacity %v, %v", kind, res, err)
		}
	}
}
