// SPDX-License-Identifier: Apache-2.0

// Package node implements CSI's Node service: it mounts volumes for pods. Package ephemeral handles
// inline volumes, and package health the health of volumes.
package node

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/csi/ephemeral"
	"stargate/csi-driver/internal/csi/health"
	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/csi/volume"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
)

// Shower mounts volumes. publish.Presenter documents the contract of each method.
type Shower interface {
	Stage(ctx context.Context, v pool.Volume, path string, o publish.Options) error
	Publish(ctx context.Context, v pool.Volume, staging, target string, o publish.Options) error
	Shown(v pool.Volume) ([]string, error)
	Machines(v pool.Volume) ([]string, error)
	Withdraw(ctx context.Context, path string) error
	Usage(ctx context.Context, v pool.Volume, path string) (publish.Usage, error)
}

// Node handles kubelet's calls.
type Node struct {
	csi.UnimplementedNodeServer

	config  request.Config
	show    Shower
	folder  *mounts.Folder
	volumes *volume.Volumes
	health  *health.Health
	inline  *ephemeral.Volumes

	machines IsMachines // nil: no pod runs a VM
	datasets Datasets   // nil: pods cannot name data sets
}

// Shared has the parts that the node's services share.
type Shared struct {
	Volumes *volume.Volumes
	Health  *health.Health
	Inline  *ephemeral.Volumes
}

// New returns a Node that accepts only paths in kubelet's folder.
func New(config request.Config, show Shower, folder *mounts.Folder, with Shared) *Node {
	return &Node{config: config, show: show, folder: folder, volumes: with.Volumes, health: with.Health, inline: with.Inline}
}

// NodeGetCapabilities lists the calls that the service supports.
func (d *Node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	res := &csi.NodeGetCapabilitiesResponse{}
	for _, c := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH,
		csi.NodeServiceCapability_RPC_GET_STORAGE_HEALTH,
		csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP,
		health.NodeCondition,
	} {
		res.Capabilities = append(res.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: c}},
		})
	}
	return res, nil
}

// NodeGetInfo reports the node's topology: each node is a separate segment.
func (d *Node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.config.NodeID, AccessibleTopology: d.config.Topology()}, nil
}

// at checks a path of a request, and returns it. An empty path is an error.
func (d *Node) at(what, path string) (string, error) {
	if path == "" {
		return "", errkind.New(errkind.Invalid, "no %s is given", what)
	}
	return d.folder.Inside(path)
}

// of checks the volume id and a path of a request, and returns the path.
func (d *Node) of(id, what, path string) (string, error) {
	if err := request.GivenVolume(id); err != nil {
		return "", err
	}
	return d.at(what, path)
}

// NodeStageVolume mounts the volume once, at kubelet's path for all pods.
func (d *Node) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	path, err := d.of(r.GetVolumeId(), "staging target path", r.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	o, err := d.config.MountOptions(r.GetVolumeCapability(), r.GetVolumeContext())
	if err != nil {
		return nil, err
	}
	end, err := d.volumes.Begin(r.GetVolumeId(), "NodeStageVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	v, err := d.volumes.Whole(ctx, r.GetVolumeId())
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

// NodeUnstageVolume unmounts the volume from this path. kubelet removes the directory.
func (d *Node) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	path, err := d.of(r.GetVolumeId(), "staging target path", r.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	end, err := d.volumes.Begin(r.GetVolumeId(), "NodeUnstageVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	if err := d.show.Withdraw(ctx, path); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume mounts a staged volume for a pod.
func (d *Node) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	target, err := d.of(r.GetVolumeId(), "target path", r.GetTargetPath())
	if err != nil {
		return nil, err
	}
	if ephemeral.Inline(r.GetVolumeContext()) {
		if name, ok := r.GetVolumeContext()[contextDataset]; ok {
			return d.publishDataset(ctx, r, name, target)
		}
		return d.inline.Publish(ctx, r, target)
	}
	o, err := d.config.MountOptions(r.GetVolumeCapability(), r.GetVolumeContext())
	if err != nil {
		return nil, err
	}
	o.ReadOnly = o.ReadOnly || r.GetReadonly()
	staging, err := d.at("staging target path", r.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	end, err := d.volumes.Begin(r.GetVolumeId(), "NodePublishVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	// If kubelet repeats the call while this call waits for the cluster, the repeated call does
	// not query the cluster.
	if o.Machine, err = d.isMachines(ctx, r.GetVolumeContext(), target); err != nil {
		return nil, err
	}
	v, err := d.volumes.Whole(ctx, r.GetVolumeId())
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

// mayPublish checks that the volume is staged. A ReadWriteOncePod volume must not be published at
// another path.
func (d *Node) mayPublish(v pool.Volume, r *csi.NodePublishVolumeRequest, staging, target string) error {
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

// mayGive refuses a volume for one VM to a second VM while the first VM's pod has it. The webhook
// may have admitted both VMs, because several reviews run at the same time. On the node, the calls
// for one volume run one after another.
func (d *Node) mayGive(v pool.Volume, r *csi.NodePublishVolumeRequest, o publish.Options, target string) error {
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
			return errkind.New(errkind.InUse, "volume %s is for one virtual machine at a time (ReadWriteOnce), and the pod of another one has it at %s", v.Name, path)
		}
	}
	return nil
}

// NodeUnpublishVolume unmounts the volume from the pod, and deletes an inline volume.
func (d *Node) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target, err := d.of(r.GetVolumeId(), "target path", r.GetTargetPath())
	if err != nil {
		return nil, err
	}
	end, err := d.volumes.Begin(r.GetVolumeId(), "NodeUnpublishVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	if err := d.show.Withdraw(ctx, target); err != nil {
		return nil, err
	}
	if err := d.inline.Delete(ctx, r.GetVolumeId(), target); err != nil {
		return nil, err
	}
	// The directory is removed last, because kubelet repeats the call while it exists.
	if err := mounts.RemoveDir(target); err != nil {
		return nil, err
	}
	failpoint.Reached(ctx, "unpublish: directory removed")
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// NodeGetVolumeStats reports the usage of a volume that is mounted at a path.
func (d *Node) NodeGetVolumeStats(ctx context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := request.GivenVolume(r.GetVolumeId()); err != nil {
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
		// The answer has no usage. The condition describes the volume's problem.
		c, known := d.health.Trouble(ctx, v)
		if !known {
			return nil, err
		}
		res := &csi.NodeGetVolumeStatsResponse{}
		c.Put(res)
		return res, nil
	}
	c, err := d.health.Condition(ctx, v)
	if err != nil {
		return nil, err
	}
	res := &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: u.Size, Used: u.Used, Available: u.Free},
		{Unit: csi.VolumeUsage_INODES, Total: u.Inodes, Used: u.InodesUsed, Available: u.InodesFree},
	}}
	c.Put(res)
	return res, nil
}

// shownAt returns the volume. It fails with NotFound unless the volume exists and is mounted at the
// path.
func (d *Node) shownAt(ctx context.Context, id, said string) (pool.Volume, string, error) {
	v, err := d.inline.Get(ctx, id)
	if errkind.Is(err, errkind.NotFound) && d.datasets != nil {
		if of, ok := d.datasets.At(said); ok {
			v, err = of, nil
		}
	}
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

// NodeExpandVolume grows a volume while it is in use.
func (d *Node) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if err := request.GivenVolume(r.GetVolumeId()); err != nil {
		return nil, err
	}
	if r.GetVolumePath() == "" {
		return nil, errkind.New(errkind.Invalid, "no volume path is given")
	}
	if c := r.GetVolumeCapability(); c != nil {
		if err := request.Check(c); err != nil {
			return nil, err
		}
	}
	if _, _, err := d.shownAt(ctx, r.GetVolumeId(), r.GetVolumePath()); err != nil {
		return nil, err
	}
	v, err := d.volumes.Expand(ctx, r.GetVolumeId(), r.GetCapacityRange(), "NodeExpandVolume")
	if err != nil {
		return nil, err
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: v.Size}, nil
}
