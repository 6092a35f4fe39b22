// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/pool"
)

func add(h *csi.VolumeHealth, status csi.VolumeHealthErrorType, reason, format string, args ...any) {
	h.HealthStatuses = append(h.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{
		Status: status, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
}

// known is what is wrong with one volume as far as a glance tells.
func (d *Driver) known(ctx context.Context, v pool.Volume) (*csi.VolumeHealth, error) {
	mount, err := d.mountOf(v)
	if err != nil {
		return nil, err
	}
	return d.knownOf(ctx, pool.Glance{Volume: v}, mount)
}

// knownOf is the same of one that has been looked at with others.
func (d *Driver) knownOf(ctx context.Context, g pool.Glance, mount *kernelmodule.Mount) (*csi.VolumeHealth, error) {
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

// health is what is wrong with a volume, if anything.
func (d *Driver) health(ctx context.Context, g pool.Glance, mount *kernelmodule.Mount) (*csi.VolumeHealth, error) {
	v := g.Volume
	h, err := d.knownOf(ctx, g, mount)
	if err != nil || !v.Readable() {
		return h, err
	}
	taken := g.Taken
	if !g.Seen {
		taken, err = d.zone.Taken(ctx, v)
	}
	// A look at heartbeats takes a second or two.
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

func (d *Driver) healthOf(ctx context.Context, id string) (*csi.VolumeHealth, error) {
	if err := given(id); err != nil {
		return nil, err
	}
	v, err := d.own(ctx, id)
	if err != nil {
		return nil, err
	}
	mount, err := d.mountOf(v)
	if err != nil {
		return nil, err
	}
	h, err := d.health(ctx, pool.Glance{Volume: v}, mount)
	if err == nil {
		h.VolumeId = id // the id may be from an earlier driver
	}
	return h, err
}

// ControllerGetVolumeHealth reports one volume.
func (d *Driver) ControllerGetVolumeHealth(ctx context.Context, r *csi.ControllerGetVolumeHealthRequest) (*csi.ControllerGetVolumeHealthResponse, error) {
	h, err := d.healthOf(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeHealthResponse{VolumeHealth: h}, nil
}

// NodeGetVolumeHealth does the same: everything is on the node.
func (d *Driver) NodeGetVolumeHealth(ctx context.Context, r *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	h, err := d.healthOf(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: h}, nil
}

// ControllerListVolumeHealth reports the volumes with problems.
func (d *Driver) ControllerListVolumeHealth(ctx context.Context, r *csi.ControllerListVolumeHealthRequest) (*csi.ControllerListVolumeHealthResponse, error) {
	page, next, err := d.page(ctx, r)
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

// healthAtOnce volumes are examined concurrently: each used volume takes a second or two.
const healthAtOnce = 4

// healthOfAll is in the volumes' order; nil for those that have gone meanwhile.
func (d *Driver) healthOfAll(ctx context.Context, volumes []pool.Glance) ([]*csi.VolumeHealth, error) {
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

// mountOf is nil if this node has not mounted the volume, or nobody could.
func (d *Driver) mountOf(v pool.Volume) (*kernelmodule.Mount, error) {
	if !v.Readable() {
		return nil, nil
	}
	mount, err := d.module.Mounted(v.Path)
	if err != nil {
		return nil, errkind.Wrap(errkind.Internal, err, "volume %s", v.Name)
	}
	return mount, nil
}

func (d *Driver) mounted() (kernelmodule.Mounts, error) {
	all, err := d.module.All()
	if err != nil {
		return all, errkind.Wrap(errkind.Internal, err, "this node's mounts")
	}
	return all, nil
}

func (d *Driver) gone(ctx context.Context, v pool.Volume) bool {
	_, err := d.zone.Get(ctx, v.Name)
	return errkind.Is(err, errkind.NotFound)
}

// inOrder looks at several at once, and has what comes of it in the volumes' order.
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

// NodeGetStorageHealth reports the zone.
func (d *Driver) NodeGetStorageHealth(ctx context.Context, _ *csi.NodeGetStorageHealthRequest) (*csi.NodeGetStorageHealthResponse, error) {
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
