// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"sync"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// calls records which call changes which volume. Each volume has at most one such call at a time.
type calls struct {
	mu  sync.Mutex
	now map[string]string // from a volume's name to the call's name
}

func newCalls() *calls { return &calls{now: map[string]string{}} }

// begin records a call for a volume. It fails with Busy while another call for the volume is in
// progress. Otherwise the caller must call end. An id and the name in the id stand for the same
// volume.
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
