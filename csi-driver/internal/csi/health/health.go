// SPDX-License-Identifier: Apache-2.0

// Package health reports problems of volumes and of the zone. It implements CSI's health calls, and
// the older volume condition.
package health

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"

	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/csi/volume"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// Zone has the methods of the node's zone that the checks need. pool.Zone documents the contract of
// each method.
type Zone interface {
	Status(ctx context.Context) (pool.Status, error)
	Glances(ctx context.Context) ([]pool.Glance, error)
	Get(ctx context.Context, name string) (pool.Volume, error)
	Info(ctx context.Context, v pool.Volume) (stargatectl.Info, error)
	Taken(ctx context.Context, v pool.Volume) (int, error)
	Systems(ctx context.Context, v pool.Volume) ([]stargatectl.System, error)
}

// Health implements the health calls of the Controller and Node services.
type Health struct {
	zone    Zone
	volumes *volume.Volumes
	module  *kernelmodule.Module
}

// New returns Health. The node's other services use the same volumes.
func New(z Zone, volumes *volume.Volumes, k *kernelmodule.Module) *Health {
	return &Health{zone: z, volumes: volumes, module: k}
}

func add(h *csi.VolumeHealth, status csi.VolumeHealthErrorType, reason, format string, args ...any) {
	h.HealthStatuses = append(h.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{
		Status: status, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
}

// known returns the problem of one volume that a check without heartbeats finds.
func (d *Health) known(ctx context.Context, v pool.Volume) (*csi.VolumeHealth, error) {
	mount, err := d.mountOf(v)
	if err != nil {
		return nil, err
	}
	return d.knownOf(ctx, pool.Glance{Volume: v}, mount)
}

// knownOf returns the same for a volume that List has examined together with other volumes.
func (d *Health) knownOf(ctx context.Context, g pool.Glance, mount *kernelmodule.Mount) (*csi.VolumeHealth, error) {
	v := g.Volume
	h := &csi.VolumeHealth{VolumeId: v.ID()}
	switch v.State {
	case pool.Damaged:
		add(h, csi.VolumeHealthErrorType_DATA_LOSS, "Damaged", "%s", v.Why)
	case pool.Missing:
		add(h, csi.VolumeHealthErrorType_INACCESSIBLE, "Missing", "%s", v.Why)
	case pool.Moved:
		add(h, csi.VolumeHealthErrorType_INACCESSIBLE, "Moved", "%s", v.Why)
	case pool.Scattered:
		add(h, csi.VolumeHealthErrorType_INACCESSIBLE, "Scattered", "%s", v.Why)
	}
	if !v.Readable() {
		return h, nil
	}
	if mount != nil && mount.ShutDown() {
		add(h, csi.VolumeHealthErrorType_INACCESSIBLE, "ShutDown", "%s", kernelmodule.WhyShutDown)
	}
	info, err := g.Info, error(nil)
	if !g.Seen {
		info, err = d.zone.Info(ctx, v)
	}
	if err != nil {
		return nil, err
	}
	if info.Errors > 0 {
		add(h, csi.VolumeHealthErrorType_DEGRADED, "ErrorsFound", "the file system has found damage %d times: run fsck.stargatefs when no system uses the volume", info.Errors)
	}
	return h, nil
}

// health returns a volume's problem, including problems of its heartbeats, or nil.
func (d *Health) health(ctx context.Context, g pool.Glance, mount *kernelmodule.Mount) (*csi.VolumeHealth, error) {
	v := g.Volume
	h, err := d.knownOf(ctx, g, mount)
	if err != nil || !v.Readable() {
		return h, err
	}
	taken := g.Taken
	if !g.Seen {
		taken, err = d.zone.Taken(ctx, v)
	}
	// A check of heartbeats takes a second or two.
	if err != nil || taken == 0 {
		return h, err
	}
	systems, err := d.zone.Systems(ctx, v)
	if err != nil {
		return nil, err
	}
	for _, s := range systems {
		if s.State == "suspected" || s.State == "dead" {
			add(h, csi.VolumeHealthErrorType_DEGRADED, "SystemSilent"+fmt.Sprint(s.Slot), "system %q is %s and holds up %d bytes", s.Name, s.State, s.HeldUp)
		}
	}
	return h, nil
}

func (d *Health) healthOf(ctx context.Context, id string) (*csi.VolumeHealth, error) {
	if err := request.GivenVolume(id); err != nil {
		return nil, err
	}
	v, err := d.volumes.Own(ctx, id)
	if err != nil {
		return nil, err
	}
	mount, err := d.mountOf(v)
	if err != nil {
		return nil, err
	}
	h, err := d.health(ctx, pool.Glance{Volume: v}, mount)
	if err == nil {
		h.VolumeId = id // an earlier driver may have created the id
	}
	return h, err
}

// ControllerGetVolumeHealth reports the health of one volume.
func (d *Health) ControllerGetVolumeHealth(ctx context.Context, r *csi.ControllerGetVolumeHealthRequest) (*csi.ControllerGetVolumeHealthResponse, error) {
	h, err := d.healthOf(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeHealthResponse{VolumeHealth: h}, nil
}

// NodeGetVolumeHealth returns the same as ControllerGetVolumeHealth, because both services run on
// the volume's node.
func (d *Health) NodeGetVolumeHealth(ctx context.Context, r *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	h, err := d.healthOf(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: h}, nil
}

// ControllerListVolumeHealth reports the volumes with problems.
func (d *Health) ControllerListVolumeHealth(ctx context.Context, r *csi.ControllerListVolumeHealthRequest) (*csi.ControllerListVolumeHealthResponse, error) {
	volumes, err := d.zone.Glances(ctx)
	if err != nil {
		return nil, err
	}
	page, next, err := request.Volumes(volumes, r)
	if err != nil {
		return nil, err
	}
	all, err := d.healthOfAll(ctx, page)
	if err != nil {
		return nil, err
	}
	res := &csi.ControllerListVolumeHealthResponse{NextToken: next}
	for _, h := range all {
		if len(h.GetHealthStatuses()) > 0 {
			res.Entries = append(res.Entries, h)
		}
	}
	return res, nil
}

// healthAtOnce is the number of volumes that are examined concurrently. Each volume in use takes a
// second or two.
const healthAtOnce = 4

// healthOfAll returns the health of all volumes, in their order. It returns nil for volumes that
// have been deleted meanwhile.
func (d *Health) healthOfAll(ctx context.Context, volumes []pool.Glance) ([]*csi.VolumeHealth, error) {
	mounts, err := d.mounted()
	if err != nil {
		return nil, err
	}
	return inOrder(ctx, volumes, func(ctx context.Context, g pool.Glance) (*csi.VolumeHealth, error) {
		h, err := d.health(ctx, g, mounts(g.Path))
		if err != nil && d.gone(ctx, g.Volume) {
			return nil, nil
		}
		return h, err
	})
}

// mountOf returns this node's mount of the volume. It returns nil if this node has not mounted the
// volume, or if the volume cannot be mounted.
func (d *Health) mountOf(v pool.Volume) (*kernelmodule.Mount, error) {
	if !v.Readable() {
		return nil, nil
	}
	mount, err := d.module.Mounted(v.Path)
	if err != nil {
		return nil, errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
	}
	return mount, nil
}

func (d *Health) mounted() (kernelmodule.Mounts, error) {
	all, err := d.module.All()
	if err != nil {
		return all, errkind.Wrap(errkind.Internal, err, "this node's mounts")
	}
	return all, nil
}

func (d *Health) gone(ctx context.Context, v pool.Volume) bool {
	_, err := d.zone.Get(ctx, v.Name)
	return errkind.Is(err, errkind.NotFound)
}

// inOrder examines volumes concurrently, and returns the results in the order of the volumes.
func inOrder[T any](ctx context.Context, volumes []pool.Glance, look func(context.Context, pool.Glance) (T, error)) ([]T, error) {
	all := make([]T, len(volumes))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(healthAtOnce)
	for i, v := range volumes {
		g.Go(func() error {
			var err error
			all[i], err = look(ctx, v)
			return err
		})
	}
	return all, g.Wait()
}

// NodeGetStorageHealth reports the health of the zone.
func (d *Health) NodeGetStorageHealth(ctx context.Context, _ *csi.NodeGetStorageHealthRequest) (*csi.NodeGetStorageHealthResponse, error) {
	bad := func(status csi.StorageHealthErrorType, reason, message string) *csi.NodeGetStorageHealthResponse {
		return &csi.NodeGetStorageHealthResponse{BackendHealth: []*csi.NodeGetStorageHealthResponse_StorageBackendHealth{
			{Status: status, Reason: reason, Message: message},
		}}
	}
	s, err := d.zone.Status(ctx)
	switch {
	case errkind.Is(err, errkind.NoZone):
		return bad(csi.StorageHealthErrorType_STORAGE_UNREACHABLE, "NoZone", err.Error()), nil
	case errkind.Is(err, errkind.NoAnswer):
		return bad(csi.StorageHealthErrorType_STORAGE_UNREACHABLE, "NoAnswer", err.Error()), nil
	case err != nil:
		return nil, err
	case s.Damaged:
		return bad(csi.StorageHealthErrorType_STORAGE_DEGRADED, "ZoneDamaged", s.Why), nil
	}
	return &csi.NodeGetStorageHealthResponse{}, nil
}
