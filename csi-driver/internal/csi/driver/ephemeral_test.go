// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
)

// inlineZone is a zone that records the names of its volumes. Its calls return the errors that a
// test sets.
type inlineZone struct {
	pool.Nothing
	there               map[string]bool
	get, create, delete error
}

func (*inlineZone) Kind() pool.Kind { return pool.File }

func (z *inlineZone) Get(_ context.Context, name string) (pool.Volume, error) {
	if z.get != nil {
		return pool.Volume{}, z.get
	}
	if !z.there[name] {
		return pool.Volume{}, errkind.New(errkind.NotFound, "there is no volume %q", name)
	}
	return pool.Volume{Name: name, State: pool.Ready}, nil
}

func (z *inlineZone) Create(ctx context.Context, spec pool.Spec) (pool.Volume, error) {
	z.there[spec.Name] = true
	if z.create != nil {
		return pool.Volume{}, z.create
	}
	return z.Get(ctx, spec.Name)
}

func (z *inlineZone) Delete(_ context.Context, name string) error {
	if z.delete == nil {
		delete(z.there, name)
	}
	return z.delete
}

// failing fails to mount volumes.
type failing struct {
	shower
	err error
}

func (f failing) Direct(context.Context, pool.Volume, string, publish.Options) error { return f.err }

// If an inline volume cannot be mounted, it is always deleted later. Either the call that created
// it deletes it, or the returned code makes kubelet unpublish it. A volume that a pod may have is
// never deleted.
func TestInlineVolumesAreNotLeft(t *testing.T) {
	broken := errkind.New(errkind.Internal, "broken")
	id := "csi-" + strings.Repeat("0123456789abcdef", 4)
	name := pool.EphemeralName(id)
	for _, c := range []struct {
		what                      string
		before                    bool // the volume existed before the call
		get, create, delete, show error
		code                      codes.Code
		left                      bool
	}{
		{what: "shown", code: codes.OK, left: true},
		{what: "shown again", before: true, code: codes.OK, left: true},
		{what: "not shown", show: broken, code: codes.Internal},
		{what: "something is in the way", show: errkind.New(errkind.Exists, "there"), code: codes.AlreadyExists},
		{what: "creation fails, and the volume does not exist", create: broken, code: codes.Internal},
		{what: "neither mounted nor deleted", show: broken, delete: broken, code: codes.Aborted, left: true},
		{what: "of an earlier call", before: true, show: broken, code: codes.Aborted, left: true},
		{what: "not seen", before: true, get: broken, code: codes.Aborted, left: true},
		{what: "busy", before: true, show: errkind.New(errkind.Busy, "wait"), code: codes.Aborted, left: true},
	} {
		kubelet := t.TempDir()
		folder, err := mounts.OpenFolder(kubelet)
		if err != nil {
			t.Fatal(err)
		}
		z := &inlineZone{there: map[string]bool{}, get: c.get, create: c.create, delete: c.delete}
		if c.before {
			z.there[name] = true
		}
		d := New(request.Config{Name: "d", NodeID: "n", DefaultSize: pool.Gigabyte}, z, failing{shower{t, kubelet}, c.show}, kernelmodule.New(kubelet), folder)
		target := filepath.Join(kubelet, "pod")
		_, err = d.NodePublishVolume(context.Background(), &csi.NodePublishVolumeRequest{
			VolumeId: id, TargetPath: target, VolumeContext: map[string]string{request.ContextInline: "true"},
			VolumeCapability: &csi.VolumeCapability{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			},
		})
		if got := status.Code(grpcstatus.Of(err)); got != c.code || z.there[name] != c.left {
			t.Errorf("%s: %v (%s); the volume exists: %v", c.what, err, got, z.there[name])
		}
		if _, err := os.Stat(target); (err == nil) != c.left {
			t.Errorf("%s: the directory: %v", c.what, err)
		}
	}
}

// A pod on a node without a zone can end. Its target directory does not exist, so there is no
// volume.
func TestInlineOnNone(t *testing.T) {
	kubelet := t.TempDir()
	folder, err := mounts.OpenFolder(kubelet)
	if err != nil {
		t.Fatal(err)
	}
	d := New(request.Config{Name: "d", NodeID: "n", DefaultSize: pool.Gigabyte}, pool.Nothing{}, shower{t, kubelet}, kernelmodule.New(kubelet), folder)
	id, target := "csi-"+strings.Repeat("0123456789abcdef", 4), filepath.Join(kubelet, "pod")
	_, err = d.NodePublishVolume(context.Background(), &csi.NodePublishVolumeRequest{
		VolumeId: id, TargetPath: target, VolumeContext: map[string]string{request.ContextInline: "true"},
		VolumeCapability: &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		},
	})
	if got := status.Code(grpcstatus.Of(err)); got != codes.Unavailable {
		t.Errorf("published: %v", err)
	}
	if _, err := d.NodeUnpublishVolume(context.Background(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target}); err != nil {
		t.Errorf("the pod cannot end: %v", err)
	}
}

// A claim's volume never counts as inline: its pod ends even while the zone cannot be read. The
// driver refuses an inline volume with such a name, because no call would delete the volume.
func TestClaimsAreNotInline(t *testing.T) {
	kubelet := t.TempDir()
	folder, err := mounts.OpenFolder(kubelet)
	if err != nil {
		t.Fatal(err)
	}
	z := &inlineZone{there: map[string]bool{}, delete: errkind.New(errkind.Internal, "LVM does not answer")}
	d := New(request.Config{Name: "d", NodeID: "n", DefaultSize: pool.Gigabyte}, z, shower{t, kubelet}, kernelmodule.New(kubelet), folder)
	for _, id := range []string{"pvc-01234567-89ab-cdef-0123-456789abcdef", pool.NameFor("a name that LVM does not take"), "v"} {
		target := filepath.Join(kubelet, "pod")
		if err := os.MkdirAll(target, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := d.NodeUnpublishVolume(context.Background(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target}); err != nil {
			t.Errorf("%s: the pod cannot end: %v", id, err)
		}
		_, err := d.NodePublishVolume(context.Background(), &csi.NodePublishVolumeRequest{
			VolumeId: id, TargetPath: target, VolumeContext: map[string]string{request.ContextInline: "true"},
			VolumeCapability: &csi.VolumeCapability{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			},
		})
		if !errkind.Is(err, errkind.Invalid) || len(z.there) > 0 {
			t.Errorf("%s as an inline volume: %v; the volumes are %v", id, err, z.there)
		}
	}
}
