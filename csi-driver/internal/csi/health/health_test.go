// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/csi/volume"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// many is a zone with volumes v0 to v7. Some of them have unreadable file systems, and some of
// these are deleted.
type many struct {
	pool.Nothing
	fails, gone map[string]bool

	mu        sync.Mutex
	now, most int // number of concurrent checks
}

func (z *many) Glances(context.Context) ([]pool.Glance, error) {
	var all []pool.Glance
	for i := range 8 {
		all = append(all, pool.Glance{Volume: pool.Volume{Name: fmt.Sprintf("v%d", i), State: pool.Ready}})
	}
	return all, nil
}

func (z *many) Get(_ context.Context, name string) (pool.Volume, error) {
	if z.gone[name] {
		return pool.Volume{}, errkind.New(errkind.NotFound, "there is no volume %q", name)
	}
	return pool.Volume{Name: name, State: pool.Ready}, nil
}

func (z *many) Info(_ context.Context, v pool.Volume) (stargatectl.Info, error) {
	z.mu.Lock()
	z.now++
	z.most = max(z.most, z.now)
	z.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	z.mu.Lock()
	z.now--
	z.mu.Unlock()
	if z.fails[v.Name] {
		return stargatectl.Info{}, errkind.New(errkind.Internal, "no such file")
	}
	return stargatectl.Info{Errors: 1}, nil
}

func (z *many) Taken(context.Context, pool.Volume) (int, error) { return 0, nil }

// The driver examines several volumes concurrently, and omits volumes that are deleted meanwhile.
func TestHealthOfMany(t *testing.T) {
	z := &many{fails: map[string]bool{"v3": true}, gone: map[string]bool{"v3": true}}
	h := New(z, volume.New(z, nil), kernelmodule.New(t.TempDir()))
	list := func() (*csi.ControllerListVolumeHealthResponse, error) {
		return h.ControllerListVolumeHealth(context.Background(), &csi.ControllerListVolumeHealthRequest{})
	}
	res, err := list()
	names := ""
	for _, e := range res.GetEntries() {
		names += e.GetVolumeId() + " "
	}
	if err != nil || names != "v0 v1 v2 v4 v5 v6 v7 " {
		t.Errorf("%s, %v", names, err)
	}
	if z.most < 2 || z.most > healthAtOnce {
		t.Errorf("%d volumes were examined at the same time", z.most)
	}
	z.gone = nil
	if _, err := list(); err == nil {
		t.Error("the list omits a volume that cannot be examined")
	}
}
