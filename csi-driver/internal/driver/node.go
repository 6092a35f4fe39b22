// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
)

// NodeGetCapabilities lists the calls that are served.
func (d *Driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	res := &csi.NodeGetCapabilitiesResponse{}
	for _, c := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH,
		csi.NodeServiceCapability_RPC_GET_STORAGE_HEALTH,
		csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP,
		nodeCondition,
	} {
		res.Capabilities = append(res.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: c}},
		})
	}
	return res, nil
}

// NodeGetInfo reports the topology: each node is a segment of its own.
func (d *Driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.config.NodeID, AccessibleTopology: d.config.topology()}, nil
}

// at is a path of a request, checked. It must be given.
func (d *Driver) at(what, path string) (string, error) {
	if path == "" {
		return "", errkind.New(errkind.Invalid, "no %s is given", what)
	}
	return d.folder.Inside(path)
}

// of is such a path in a request about a volume.
func (d *Driver) of(id, what, path string) (string, error) {
	if err := given(id); err != nil {
		return "", err
	}
	return d.at(what, path)
}

func given(id string) error {
	if id == "" {
		return errkind.New(errkind.Invalid, "no volume id is given")
	}
	return nil
}

// options are those of a mount of the volume.
func (d *Driver) options(c *csi.VolumeCapability, context map[string]string) (publish.Options, error) {
	if err := check(c); err != nil {
		return publish.Options{}, err
	}
	m, err := mode(context)
	if err != nil {
		return publish.Options{}, err
	}
	o := mountOf(c)
	o.Flags = append(o.Flags, m...)
	if (o.Setuid || o.Devices) && !d.config.AllowSuidDev {
		return o, errkind.New(errkind.InUse, "mount options suid and dev: this node does not allow them (--allow-suid-dev)")
	}
	if slices.Contains(o.Flags, "map=splice") && !d.config.AllowHostSplice {
		return o, errkind.New(errkind.InUse, "map=splice: this node does not allow it (--allow-host-splice)")
	}
	return o, nil
}

// NodeStageVolume mounts the volume at kubelet's own path, once.
func (d *Driver) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	path, err := d.of(r.GetVolumeId(), "staging target path", r.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	o, err := d.options(r.GetVolumeCapability(), r.GetVolumeContext())
	if err != nil {
		return nil, err
	}
	end, err := d.calls.begin(r.GetVolumeId(), "NodeStageVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	v, err := d.whole(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := mounts.MakeDir(path); err != nil {
		return nil, err
	}
	failpoint.Reached(ctx, "stage: directory made")
	if err := d.show.Stage(ctx, v, path, o); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume undoes that. The directory belongs to kubelet.
func (d *Driver) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	path, err := d.of(r.GetVolumeId(), "staging target path", r.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	end, err := d.calls.begin(r.GetVolumeId(), "NodeUnstageVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	if err := publish.Withdraw(ctx, d.mounts, path); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume gives a staged volume to a pod.
func (d *Driver) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	target, err := d.of(r.GetVolumeId(), "target path", r.GetTargetPath())
	if err != nil {
		return nil, err
	}
	if inline(r.GetVolumeContext()) {
		return d.publishEphemeral(ctx, r, target)
	}
	o, err := d.options(r.GetVolumeCapability(), r.GetVolumeContext())
	if err != nil {
		return nil, err
	}
	o.ReadOnly = o.ReadOnly || r.GetReadonly()
	staging, err := d.at("staging target path", r.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	end, err := d.calls.begin(r.GetVolumeId(), "NodePublishVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	// If kubelet repeats a call while this one waits for the cluster, the repeated one does not
	// ask as well.
	if o.Machine, err = d.isMachines(ctx, r.GetVolumeContext(), target); err != nil {
		return nil, err
	}
	v, err := d.whole(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := d.mayPublish(v, r, staging, target); err != nil {
		return nil, err
	}
	if err := d.mayGive(v, r, o, target); err != nil {
		return nil, err
	}
	if err := mounts.MakeDir(target); err != nil {
		return nil, err
	}
	failpoint.Reached(ctx, "publish: directory made")
	if err := d.show.Publish(ctx, v, staging, target, o); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// mayPublish looks whether it is staged, and where else it is if it may be at one place only.
func (d *Driver) mayPublish(v pool.Volume, r *csi.NodePublishVolumeRequest, staging, target string) error {
	shown, err := d.show.Shown(v)
	if err != nil {
		return err
	}
	if !slices.Contains(shown, staging) {
		return errkind.New(errkind.InUse, "volume %s is not staged at %s", v.Name, staging)
	}
	if r.GetVolumeCapability().GetAccessMode().GetMode() != csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
		return nil
	}
	for _, path := range shown {
		if path != staging && path != target {
			return errkind.New(errkind.InUse, "volume %s is for one pod at a time (ReadWriteOncePod), and is published at %s", v.Name, path)
		}
	}
	return nil
}

// mayGive: a volume that is for one machine is not given to a second one, as long as the first one's pod has it. Both
// may have been admitted, as an API server reviews several objects at once; here one call comes after the other.
func (d *Driver) mayGive(v pool.Volume, r *csi.NodePublishVolumeRequest, o publish.Options, target string) error {
	switch r.GetVolumeCapability().GetAccessMode().GetMode() {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
	default:
		return nil
	}
	if !o.Machine {
		return nil
	}
	have, err := d.show.Machines(v)
	if err != nil {
		return err
	}
	for _, path := range have {
		if path != target {
			return errkind.New(errkind.InUse, "volume %s is for one virtual machine at a time (ReadWriteOnce), and another one's pod has it at %s", v.Name, path)
		}
	}
	return nil
}

// NodeUnpublishVolume undoes it, and deletes an inline volume.
func (d *Driver) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target, err := d.of(r.GetVolumeId(), "target path", r.GetTargetPath())
	if err != nil {
		return nil, err
	}
	end, err := d.calls.begin(r.GetVolumeId(), "NodeUnpublishVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	if err := publish.Withdraw(ctx, d.mounts, target); err != nil {
		return nil, err
	}
	if err := d.deleteEphemeral(ctx, r.GetVolumeId(), target); err != nil {
		return nil, err
	}
	// Last: as long as it exists kubelet calls again.
	if err := mounts.RemoveDir(target); err != nil {
		return nil, err
	}
	failpoint.Reached(ctx, "unpublish: directory removed")
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeGetVolumeStats reports the usage of a volume that is shown at a path.
func (d *Driver) NodeGetVolumeStats(ctx context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := given(r.GetVolumeId()); err != nil {
		return nil, err
	}
	if r.GetVolumePath() == "" {
		return nil, errkind.New(errkind.Invalid, "no volume path is given")
	}
	v, path, err := d.shownAt(ctx, r.GetVolumeId(), r.GetVolumePath())
	if err != nil {
		return nil, err
	}
	u, err := d.show.Usage(ctx, v, path)
	if err != nil {
		return d.statsOfBroken(ctx, v, err)
	}
	c, err := d.condition(ctx, v)
	if err != nil {
		return nil, err
	}
	res := &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: u.Size, Used: u.Used, Available: u.Free},
		{Unit: csi.VolumeUsage_INODES, Total: u.Inodes, Used: u.InodesUsed, Available: u.InodesFree},
	}}
	c.put(res)
	return res, nil
}

// statsOfBroken are without usage: of what is known to be wrong with a volume its condition tells.
func (d *Driver) statsOfBroken(ctx context.Context, v pool.Volume, why error) (*csi.NodeGetVolumeStatsResponse, error) {
	h, err := d.known(ctx, v)
	if err != nil || len(h.GetHealthStatuses()) == 0 {
		return nil, why
	}
	res := &csi.NodeGetVolumeStatsResponse{}
	conditionOf(h).put(res)
	return res, nil
}

// shownAt is NotFound unless the volume is there, and at that path.
func (d *Driver) shownAt(ctx context.Context, id, said string) (pool.Volume, string, error) {
	v, err := d.get(ctx, id)
	if err != nil {
		return v, "", err
	}
	shown, err := d.show.Shown(v)
	if err != nil {
		return v, "", err
	}
	path, err := d.folder.Inside(said)
	if err != nil || !slices.Contains(shown, path) {
		return v, "", errkind.New(errkind.NotFound, "volume %s is not at %q", id, said)
	}
	return v, path, nil
}

// NodeExpandVolume makes a volume larger while it is used.
func (d *Driver) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if err := given(r.GetVolumeId()); err != nil {
		return nil, err
	}
	if r.GetVolumePath() == "" {
		return nil, errkind.New(errkind.Invalid, "no volume path is given")
	}
	if c := r.GetVolumeCapability(); c != nil {
		if err := check(c); err != nil {
			return nil, err
		}
	}
	if _, _, err := d.shownAt(ctx, r.GetVolumeId(), r.GetVolumePath()); err != nil {
		return nil, err
	}
	v, err := d.expand(ctx, r.GetVolumeId(), r.GetCapacityRange(), "NodeExpandVolume")
	if err != nil {
		return nil, err
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: v.Size}, nil
}
