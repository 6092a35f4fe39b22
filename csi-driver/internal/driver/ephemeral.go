// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/step"
	"stargate/csi-driver/internal/zone"
)

// An inline volume stands in a pod: it is made when the pod is started and ends with it. Its name tells
// what it is, so that nothing has to be remembered.

const contextInline = foreignPrefix + "ephemeral"

func inline(context map[string]string) bool { return context[contextInline] == "true" }

func (d *Driver) publishEphemeral(ctx context.Context, r *csi.NodePublishVolumeRequest, target string) (*csi.NodePublishVolumeResponse, error) {
	o, err := d.options(r.GetVolumeCapability(), nil)
	if err != nil {
		return nil, err
	}
	s, err := parse(append(append([]parameter{}, parameters...), inlineSize), r.GetVolumeContext())
	if err != nil {
		return nil, err
	}
	if err := s.allowed(d.config); err != nil {
		return nil, err
	}
	m, err := mode(s.context())
	if err != nil {
		return nil, err
	}
	o.Flags, o.ReadOnly = append(o.Flags, m...), o.ReadOnly || r.GetReadonly()
	n, err := size(&csi.CapacityRange{RequiredBytes: s.size}, d.config.DefaultSize)
	if err != nil {
		return nil, err
	}
	end, err := d.calls.begin(r.GetVolumeId(), "NodePublishVolume")
	if err != nil {
		return nil, err
	}
	defer end()
	spec := s.spec(zone.EphemeralName(r.GetVolumeId()), n)
	v, err := d.create(ctx, spec, nil, func(zone.Volume) error { return nil })
	if err != nil {
		return nil, err
	}
	if err := mounts.MakeDir(target); err != nil {
		return nil, err
	}
	step.Reached(ctx, "publish: directory made")
	if err := d.show.Direct(ctx, v, target, o); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// deleteEphemeral has nothing to do for a claim's volume. If the zone is gone, so is what was in it;
// kubelet's names for inline volumes are none that a claim's volume could have. A machine that still has it
// ends with its pod: that is waited for.
func (d *Driver) deleteEphemeral(ctx context.Context, id string) error {
	err := d.zone.Delete(ctx, zone.EphemeralName(id))
	if fault.Is(err, fault.NoZone) && zone.ValidName(id) {
		return nil
	}
	if fault.Is(err, fault.InUse) {
		return fault.Wrap(fault.Busy, err, "inline volume")
	}
	return err
}

// get has a volume of a claim, or of a pod.
func (d *Driver) get(ctx context.Context, id string) (zone.Volume, error) {
	v, err := d.zone.Get(ctx, id)
	if !fault.Is(err, fault.NotFound) {
		return v, err
	}
	if e, eerr := d.zone.Get(ctx, zone.EphemeralName(id)); !fault.Is(eerr, fault.NotFound) {
		return e, eerr
	}
	return v, err
}
