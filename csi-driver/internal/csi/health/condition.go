// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// The volume condition was an alpha part of CSI up to 1.12; 1.13 replaces it by health, and does
// not reuse its numbers. Earlier kubelets (1.35, with the gate CSIVolumeHealth), and the health
// monitors of their time, ask only for the condition. So the driver claims and sends it by its
// numbers; clients that do not know them ignore it.
const (
	// NodeCondition is the node's capability VOLUME_CONDITION.
	NodeCondition = csi.NodeServiceCapability_RPC_Type(4)
	// ControllerCondition is the controller's capability VOLUME_CONDITION.
	ControllerCondition = csi.ControllerServiceCapability_RPC_Type(11)

	conditionField = protowire.Number(2) // in all messages that had one
	abnormalField  = protowire.Number(1)
	messageField   = protowire.Number(2)
)

const well = "nothing is known to be wrong with it"

// Condition describes the problem of a volume in one sentence. It does not watch heartbeats: that
// takes a second or two, and kubelet asks each minute for each pod.
type Condition struct {
	abnormal bool
	message  string
}

// Condition fails only if its caller no longer waits, or if the volume has been deleted meanwhile.
// A volume that cannot be examined has an abnormal condition.
func (d *Health) Condition(ctx context.Context, v pool.Volume) (Condition, error) {
	h, err := d.known(ctx, v)
	return d.conditionFrom(ctx, v, h, err)
}

func (d *Health) conditionFrom(ctx context.Context, v pool.Volume, h *csi.VolumeHealth, err error) (Condition, error) {
	switch {
	case err != nil && d.gone(ctx, v):
		return Condition{}, errkind.Wrap(errkind.NotFound, err, "volume %s has been deleted", v.Name)
	case err != nil && ctx.Err() != nil:
		return Condition{}, errkind.Wrap(errkind.KindOf(err), errors.Join(err, ctx.Err()), "condition")
	case err != nil:
		return Condition{true, fmt.Sprintf("the state is unknown: %v", err)}, nil
	}
	return conditionOf(h), nil
}

// Trouble is the condition of a volume that is known to have a problem.
func (d *Health) Trouble(ctx context.Context, v pool.Volume) (c Condition, known bool) {
	h, err := d.known(ctx, v)
	if err != nil || len(h.GetHealthStatuses()) == 0 {
		return c, false
	}
	return conditionOf(h), true
}

// Conditions are in the volumes' order; nil for volumes that have been deleted meanwhile.
func (d *Health) Conditions(ctx context.Context, volumes []pool.Glance) ([]*Condition, error) {
	mounts, err := d.mounted()
	return inOrder(ctx, volumes, func(ctx context.Context, g pool.Glance) (*Condition, error) {
		h, kerr := (*csi.VolumeHealth)(nil), err
		if err == nil {
			h, kerr = d.knownOf(ctx, g, mounts(g.Path))
		}
		c, err := d.conditionFrom(ctx, g.Volume, h, kerr)
		if errkind.Is(err, errkind.NotFound) {
			return nil, nil
		}
		return &c, err
	})
}

func conditionOf(h *csi.VolumeHealth) Condition {
	var words []string
	for _, s := range h.GetHealthStatuses() {
		words = append(words, s.GetReason()+": "+s.GetMessage())
	}
	if len(words) == 0 {
		return Condition{false, well}
	}
	return Condition{true, strings.Join(words, "; ")}
}

// Put adds the condition to the message, beside the fields of the present CSI.
func (c Condition) Put(m proto.Message) {
	inner := protowire.AppendTag(nil, abnormalField, protowire.VarintType)
	inner = protowire.AppendVarint(inner, protowire.EncodeBool(c.abnormal))
	inner = protowire.AppendTag(inner, messageField, protowire.BytesType)
	inner = protowire.AppendString(inner, strings.ToValidUTF8(c.message, "?"))
	outer := protowire.AppendTag(nil, conditionField, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendBytes(outer, inner))
}
