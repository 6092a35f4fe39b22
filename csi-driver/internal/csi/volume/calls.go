// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"sync"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// calls knows the volumes that are being changed: one call at a time for each.
type calls struct {
	mu  sync.Mutex
	now map[string]string // volume to call
}

func newCalls() *calls { return &calls{now: map[string]string{}} }

// begin fails with Busy while another call for the volume is in progress; otherwise the caller has
// to call end. An id and the name in it are the same volume.
func (c *calls) begin(id, call string) (end func(), err error) {
	volume := pool.NameOf(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, ok := c.now[volume]; ok {
		return nil, errkind.New(errkind.Busy, "%s for volume %q is still in progress", other, volume)
	}
	c.now[volume] = call
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.now, volume)
	}, nil
}
