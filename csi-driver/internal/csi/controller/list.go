// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/csi/request"
)

// ListVolumes lists this node's volumes.
func (d *Controller) ListVolumes(ctx context.Context, r *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	all, err := d.zone.Glances(ctx)
	if err != nil {
		return nil, err
	}
	page, next, err := request.Volumes(all, r)
	if err != nil {
		return nil, err
	}
	conditions, err := d.health.Conditions(ctx, page)
	if err != nil {
		return nil, err
	}
	res := &csi.ListVolumesResponse{NextToken: next}
	for i, g := range page {
		if conditions[i] == nil {
			continue
		}
		status := &csi.ListVolumesResponse_VolumeStatus{}
		conditions[i].Put(status)
		res.Entries = append(res.Entries, &csi.ListVolumesResponse_Entry{Volume: d.volume(g.Volume, nil), Status: status})
	}
	return res, nil
}

// ControllerGetVolume returns one volume of this node.
func (d *Controller) ControllerGetVolume(ctx context.Context, r *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if err := request.GivenVolume(r.GetVolumeId()); err != nil {
		return nil, err
	}
	v, err := d.volumes.Own(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	c, err := d.health.Condition(ctx, v)
	if err != nil {
		return nil, err
	}
	status := &csi.ControllerGetVolumeResponse_VolumeStatus{}
	c.Put(status)
	found := d.volume(v, nil)
	found.VolumeId = r.GetVolumeId() // an earlier driver may have created the id
	return &csi.ControllerGetVolumeResponse{Volume: found, Status: status}, nil
}
