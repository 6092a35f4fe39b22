// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// inlineID is an id like those that kubelet creates for inline volumes. It is longer than any name
// in a zone.
const inlineID = "csi-0123456789012345678901234567890123456789012345678901234567890123"

var capability = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
}

func bytes(n int64) *csi.CapacityRange { return &csi.CapacityRange{RequiredBytes: n} }

func ofVolume(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id}}}
}

func ofSnapshot(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
}

// These methods call the driver with the requests of the tests.

func (w *world) create(ctx context.Context, name string, source *csi.VolumeContentSource) error {
	_, err := w.driver.CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name: name, CapacityRange: bytes(32 * mib), VolumeCapabilities: []*csi.VolumeCapability{capability}, VolumeContentSource: source,
	})
	return err
}

func (w *world) delete(ctx context.Context, id string) error {
	_, err := w.driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	return err
}

func (w *world) expand(ctx context.Context, id string) error {
	_, err := w.driver.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: bytes(64 * mib)})
	return err
}

func (w *world) snapshot(ctx context.Context, name, source string) error {
	_, err := w.driver.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: source})
	return err
}

func (w *world) deleteSnapshot(ctx context.Context, name string) error {
	_, err := w.driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: pool.SnapshotName(name)})
	return err
}

func (w *world) stage(ctx context.Context, id string) error {
	_, err := w.driver.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: id, StagingTargetPath: w.path("staging"), VolumeCapability: capability,
	})
	return err
}

func (w *world) unstage(ctx context.Context, id string) error {
	_, err := w.driver.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: w.path("staging")})
	return err
}

func (w *world) publish(ctx context.Context, id string) error {
	_, err := w.driver.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: id, StagingTargetPath: w.path("staging"), TargetPath: w.path("pod"), VolumeCapability: capability,
	})
	return err
}

func (w *world) publishInline(ctx context.Context) error {
	_, err := w.driver.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: inlineID, TargetPath: w.path("pod"), VolumeCapability: capability,
		VolumeContext: map[string]string{"csi.storage.k8s.io/ephemeral": "true"},
	})
	return err
}

func (w *world) unpublish(ctx context.Context, id string) error {
	_, err := w.driver.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: w.path("pod")})
	return err
}

func (w *world) stats(ctx context.Context, id string) error {
	_, err := w.driver.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: w.path("staging")})
	return err
}

func (w *world) health(ctx context.Context, id string) error {
	_, err := w.driver.NodeGetVolumeHealth(ctx, &csi.NodeGetVolumeHealthRequest{VolumeId: id})
	return err
}

// must fails the test if a preparing step failed.
func (w *world) must(errs ...error) {
	w.t.Helper()
	for _, err := range errs {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// These functions prepare the state before a test.

func nothing(*world) {}

func volume(w *world) { w.must(w.create(context.Background(), "v", nil)) }

func used(w *world) {
	volume(w)
	w.zone.Use("v", stargatectl.System{Name: "vm", State: "alive"})
}

func inactive(w *world) {
	volume(w)
	w.zone.Deactivate("v")
}

func snapshotted(w *world) {
	volume(w)
	w.must(w.snapshot(context.Background(), "s", "v"))
}

func staged(w *world) {
	volume(w)
	w.must(w.stage(context.Background(), "v"))
}

func published(w *world) {
	staged(w)
	w.must(w.publish(context.Background(), "v"))
}

func publishedInline(w *world) { w.must(w.publishInline(context.Background())) }
