// SPDX-License-Identifier: Apache-2.0

package driver

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
	nodeCondition       = csi.NodeServiceCapability_RPC_Type(4)        // VOLUME_CONDITION
	controllerCondition = csi.ControllerServiceCapability_RPC_Type(11) // VOLUME_CONDITION

	conditionField = protowire.Number(2) // in all messages that had one
	abnormalField  = protowire.Number(1)
	messageField   = protowire.Number(2)
)

const well = "nothing is known to be wrong with it"

// condition describes the problem of a volume in one sentence. It does not watch heartbeats: that
// takes a second or two, and kubelet asks each minute for each pod.
type condition struct {
	abnormal bool
	message  string
}

// condition is an error only if nobody waits for it any more, or if the volume has gone meanwhile: what cannot be
// looked at is not as it should be.
func (d *Driver) condition(ctx context.Context, v pool.Volume) (condition, error) {
	h, err := d.known(ctx, v)
	return d.conditionFrom(ctx, v, h, err)
}

func (d *Driver) conditionFrom(ctx context.Context, v pool.Volume, h *csi.VolumeHealth, err error) (condition, error) {
	switch {
	case err != nil && d.gone(ctx, v):
		return condition{}, errkind.Wrap(errkind.NotFound, err, "volume %s has gone", v.Name)
	case err != nil && ctx.Err() != nil:
		return condition{}, errkind.Wrap(errkind.KindOf(err), errors.Join(err, ctx.Err()), "condition")
	case err != nil:
		return condition{true, fmt.Sprintf("the driver cannot find out its state: %v", err)}, nil
	}
	return conditionOf(h), nil
}

// conditions are in the volumes' order; nil for those that have gone meanwhile.
func (d *Driver) conditions(ctx context.Context, volumes []pool.Glance) ([]*condition, error) {
	mounts, err := d.mounted()
	return inOrder(ctx, volumes, func(ctx context.Context, g pool.Glance) (*condition, error) {
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

func conditionOf(h *csi.VolumeHealth) condition {
	var words []string
	for _, s := range h.GetHealthStatuses() {
		words = append(words, s.GetReason()+": "+s.GetMessage())
	}
	if len(words) == 0 {
		return condition{false, well}
	}
	return condition{true, strings.Join(words, "; ")}
}

// put adds it to the message, beside the fields of the present CSI.
func (c condition) put(m proto.Message) {
	inner := protowire.AppendTag(nil, abnormalField, protowire.VarintType)
	inner = protowire.AppendVarint(inner, protowire.EncodeBool(c.abnormal))
	inner = protowire.AppendTag(inner, messageField, protowire.BytesType)
	inner = protowire.AppendString(inner, strings.ToValidUTF8(c.message, "?"))
	outer := protowire.AppendTag(nil, conditionField, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendBytes(outer, inner))
}
