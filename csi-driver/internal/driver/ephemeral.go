// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
)

// An inline volume is part of a pod: it is made when the pod starts, and deleted with it. Its name
// shows its kind, so the driver stores no state. Its id shows it, too: kubelet's ids for these
// ("csi-" and 64 digits) are longer than any name in the zone, and the id of a claim's volume is
// such a name.

const contextInline = foreignPrefix + "ephemeral"

func inline(context map[string]string) bool { return context[contextInline] == "true" }

// isClaims reports whether an id belongs to a claim's volume.
func isClaims(id string) bool {
	_, ok := pool.ParseID(id)
	return ok
}

func (d *Driver) publishEphemeral(ctx context.Context, r *csi.NodePublishVolumeRequest, target string) (*csi.NodePublishVolumeResponse, error) {
	if isClaims(r.GetVolumeId()) {
		return nil, errkind.New(errkind.Invalid, "%q is the id of a claim's volume, and not of an inline one", r.GetVolumeId())
	}
	o, err := d.options(r.GetVolumeCapability(), nil)
	if err != nil {
		return nil, err
	}
	s, err := d.config.inlineSettings(r.GetVolumeContext())
	if err != nil {
		return nil, err
	}
	if err := s.allowed(d.config); err != nil {
		return nil, err
	}
	m, err := mode(s.context(pool.Volume{}))
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
	// The directory is created before the volume, and not without a zone: no directory means
	// that nothing was made.
	if _, err := d.zone.Status(ctx); err != nil {
		return nil, err
	}
	if d.zone.Kind() == pool.None {
		return nil, errkind.New(errkind.NoZone, "node %s has no zone", d.config.NodeID)
	}
	if err := mounts.MakeDir(target); err != nil {
		return nil, err
	}
	failpoint.Reached(ctx, "publish: directory made")
	if err := d.showEphemeral(ctx, s.spec(pool.EphemeralName(r.GetVolumeId()), n), target, o); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// showEphemeral makes the volume, or finds what an earlier call has made, and shows it. kubelet does not come
// again to undo what has failed for good: so what this call has made goes with it. What an earlier one has made
// a pod may have already; it stays, and the answer is one upon which kubelet unpublishes in the end.
func (d *Driver) showEphemeral(ctx context.Context, spec pool.Spec, target string, o publish.Options) error {
	fresh := false
	v, err := findOrMake(func() (pool.Volume, error) { return d.active(ctx, spec.Name) }, func() (pool.Volume, error) {
		fresh = true
		return d.zone.Create(ctx, spec)
	})
	if err == nil {
		err = d.show.Direct(ctx, v, target, o)
	}
	if err == nil {
		return nil
	}
	left := errkind.New(errkind.Exists, "the volume was there before this call")
	if fresh {
		left = d.removeEphemeral(ctx, spec.Name, target)
	}
	if left == nil || comesAgain[errkind.KindOf(err)] {
		return err
	}
	return errkind.Wrap(errkind.Busy, err, "an inline volume is left (%v)", left)
}

// comesAgain are kinds whose codes kubelet takes for "perhaps done".
var comesAgain = map[errkind.Kind]bool{errkind.Busy: true, errkind.NoSpace: true, errkind.NoZone: true, errkind.NoAnswer: true}

func (d *Driver) removeEphemeral(ctx context.Context, name, target string) error {
	if err := publish.Withdraw(ctx, d.mounts, target); err != nil {
		return err
	}
	if err := d.zone.Delete(ctx, name); err != nil {
		return err
	}
	return mounts.RemoveDir(target)
}

// deleteEphemeral does nothing for a claim's volume, whose pod ends whether or not the zone
// answers. On a node that never had a zone no directory was made for an inline volume, and its pod
// can end. If the directory exists and the zone cannot be seen now, the call waits for the zone,
// because the volume may be in it. It also waits for a VM that still uses the volume, and ends with
// its pod.
func (d *Driver) deleteEphemeral(ctx context.Context, id, target string) error {
	if isClaims(id) {
		return nil
	}
	err := d.zone.Delete(ctx, pool.EphemeralName(id))
	if (errkind.Is(err, errkind.NoZone) || errkind.Is(err, errkind.NoAnswer)) && !mounts.DirThere(target) {
		return nil
	}
	if errkind.Is(err, errkind.InUse) {
		return errkind.Wrap(errkind.Busy, err, "inline volume")
	}
	return err
}

// get has a volume of a claim, or of a pod.
func (d *Driver) get(ctx context.Context, id string) (pool.Volume, error) {
	v, err := d.find(ctx, id)
	if !errkind.Is(err, errkind.NotFound) {
		return v, err
	}
	if e, eerr := d.zone.Get(ctx, pool.EphemeralName(id)); !errkind.Is(eerr, errkind.NotFound) {
		return e, eerr
	}
	return v, err
}
