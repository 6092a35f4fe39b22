// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"stargate/csi-driver/internal/keeper"
)

// The metrics show the driver's status of the keeper and its servers.
func TestServers(t *testing.T) {
	status := keeper.Status{Up: true, Held: 2, Restarts: map[string]int{"v": 3}}
	own := prometheus.NewRegistry()
	own.MustRegister(NewServers(func() keeper.Status { return status }))
	for _, up := range []bool{true, false} {
		status.Up = up
		families, err := own.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range families {
			for _, m := range f.GetMetric() {
				got += fmt.Sprintf("%s %v ", f.GetName(), m.GetGauge().GetValue()+m.GetCounter().GetValue())
			}
		}
		want := fmt.Sprintf("stargate_fuse_keeper_up %d stargate_fuse_mounts 2 stargate_fuse_server_restarts_total 3 ", map[bool]int{true: 1}[up])
		if got != want {
			t.Errorf("%s; should be %s", got, want)
		}
	}
}
