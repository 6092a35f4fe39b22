// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"context"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/tools"
)

// Look is what a zone of any kind knows of the file systems in its volumes: what the tools say.
type Look struct{ Tools *tools.Tools }

// Info is of the file system.
func (l Look) Info(ctx context.Context, v Volume) (tools.Info, error) {
	info, err := l.Tools.Info(ctx, v.Path)
	return info, looked(err, v)
}

// Space is of the file system.
func (l Look) Space(ctx context.Context, v Volume) (tools.Space, error) {
	space, err := l.Tools.Space(ctx, v.Path)
	return space, looked(err, v)
}

// Systems have it mounted.
func (l Look) Systems(ctx context.Context, v Volume) ([]tools.System, error) {
	systems, err := l.Tools.Systems(ctx, v.Path)
	return systems, looked(err, v)
}

// Taken is how many systems are in its mount table.
func (l Look) Taken(ctx context.Context, v Volume) (int, error) {
	n, err := l.Tools.Taken(ctx, v.Path)
	return n, looked(err, v)
}

func looked(err error, v Volume) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.Internal, err, "volume %s", v.Name)
}
