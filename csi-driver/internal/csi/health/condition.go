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

// The volume condition was an alpha part of CSI up to 1.12. CSI 1.13 replaces it by health calls,
// and does not reuse the numbers of its fields. Earlier kubelets (1.35, with the gate
// CSIVolumeHealth) and the health monitors of that time read only the condition. So the driver
// declares and sends the condition with its old numbers. Clients that do not know these numbers
// ignore the condition.
const (
	// NodeCondition is the node's capability VOLUME_CONDITION.
	NodeCondition = csi.NodeServiceCapability_RPC_Type(4)
	// ControllerCondition is the controller's capability VOLUME_CONDITION.
	ControllerCondition = csi.ControllerServiceCapability_RPC_Type(11)

	conditionField = protowire.Number(2) // the same number in all messages
	abnormalField  = protowire.Number(1)
	messageField   = protowire.Number(2)
)

const well = "nothing is known to be wrong with it"

// Condition describes a volume's problem in one sentence. It does not cover heartbeats: a check of
// them takes a second or two, and kubelet requests the condition each minute for each pod.
type Condition struct {
	abnormal bool
	message  string
}

// Condition returns a volume's condition. It fails only if the caller no longer waits, or if the
// volume has been deleted meanwhile. If the volume cannot be examined, the condition is abnormal.
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

// Trouble returns the condition of a volume with a known problem.
func (d *Health) Trouble(ctx context.Context, v pool.Volume) (c Condition, known bool) {
	h, err := d.known(ctx, v)
	if err != nil || len(h.GetHealthStatuses()) == 0 {
		return c, false
	}
	return conditionOf(h), true
}

// Conditions returns the conditions in the order of the volumes. It returns nil for volumes that
// have been deleted meanwhile.
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

// Put adds the condition to a message of the present CSI, as an additional field.
func (c Condition) Put(m proto.Message) {
	inner := protowire.AppendTag(nil, abnormalField, protowire.VarintType)
	inner = protowire.AppendVarint(inner, protowire.EncodeBool(c.abnormal))
	inner = protowire.AppendTag(inner, messageField, protowire.BytesType)
	inner = protowire.AppendString(inner, strings.ToValidUTF8(c.message, "?"))
	outer := protowire.AppendTag(nil, conditionField, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendBytes(outer, inner))
}
