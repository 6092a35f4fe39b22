// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// A token has the name after which to continue: it stays valid when volumes come and go.
const tokenPrefix = "behind:"

// paginate expects them sorted by name.
func paginate[T any](all []T, name func(T) string, token string, most int32) (page []T, next string, err error) {
	if most < 0 {
		return nil, "", errkind.New(errkind.Invalid, "max_entries is negative")
	}
	after := ""
	if token != "" {
		last, ok := strings.CutPrefix(token, tokenPrefix)
		if !ok || !pool.ValidName(last) {
			return nil, "", errkind.New(errkind.Busy, "%q is no token of this driver: begin anew", token)
		}
		after = last
	}
	for _, one := range all {
		if name(one) <= after {
			continue
		}
		if most > 0 && len(page) == int(most) {
			return page, tokenPrefix + name(page[most-1]), nil
		}
		page = append(page, one)
	}
	return page, "", nil
}

// pageRequest is a request for a part of a list.
type pageRequest interface {
	GetStartingToken() string
	GetMaxEntries() int32
}

// page has volumes of this node.
func (d *Driver) page(ctx context.Context, r pageRequest) (page []pool.Glance, next string, err error) {
	volumes, err := d.zone.Glances(ctx)
	if err != nil {
		return nil, "", err
	}
	return paginate(volumes, func(g pool.Glance) string { return g.Name }, r.GetStartingToken(), r.GetMaxEntries())
}

// ListVolumes lists those of this node.
func (d *Driver) ListVolumes(ctx context.Context, r *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	page, next, err := d.page(ctx, r)
	if err != nil {
		return nil, err
	}
	conditions, err := d.conditions(ctx, page)
	if err != nil {
		return nil, err
	}
	res := &csi.ListVolumesResponse{NextToken: next}
	for i, g := range page {
		if conditions[i] == nil {
			continue
		}
		status := &csi.ListVolumesResponse_VolumeStatus{}
		conditions[i].put(status)
		res.Entries = append(res.Entries, &csi.ListVolumesResponse_Entry{Volume: d.volume(g.Volume, nil), Status: status})
	}
	return res, nil
}

// ControllerGetVolume returns one.
func (d *Driver) ControllerGetVolume(ctx context.Context, r *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if err := given(r.GetVolumeId()); err != nil {
		return nil, err
	}
	v, err := d.own(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	c, err := d.condition(ctx, v)
	if err != nil {
		return nil, err
	}
	status := &csi.ControllerGetVolumeResponse_VolumeStatus{}
	c.put(status)
	found := d.volume(v, nil)
	found.VolumeId = r.GetVolumeId() // the id may be from an earlier driver
	return &csi.ControllerGetVolumeResponse{Volume: found, Status: status}, nil
}
