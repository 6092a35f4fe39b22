// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/module"
	"stargate/csi-driver/internal/zone"
)

// silent is a zone that may not answer.
type silent struct {
	zone.Nothing
	err error
}

func (s *silent) Status(context.Context) (zone.Status, error) {
	return zone.Status{Size: zone.Gigabyte}, s.err
}

// A look in vain leaves what was seen, for a while; that there is no zone is something seen.
func TestLooksInVain(t *testing.T) {
	z := &silent{}
	lost := int64(-1)
	c := NewCollector(z, module.New(t.TempDir()), func() (int64, bool) { return lost, lost >= 0 }, klog.Background())
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	look := func() map[string]float64 {
		t.Helper()
		c.last = time.Time{}
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]float64{}
		for _, f := range families {
			seen[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
		}
		return seen
	}
	is := func(when string, up, size float64) {
		t.Helper()
		seen := look()
		if seen["stargate_zone_up"] != up || seen["stargate_zone_size_bytes"] != size {
			t.Errorf("%s: %v", when, seen)
		}
	}
	is("there", 1, float64(zone.Gigabyte))
	if n, shown := look()["stargate_zone_orphans"]; shown {
		t.Errorf("nobody knows, and it is %v", n)
	}
	lost = 3
	if n := look()["stargate_zone_orphans"]; n != 3 {
		t.Errorf("%v orphans", n)
	}
	z.err = fault.New(fault.NoAnswer, "deadline exceeded")
	is("does not answer", 1, float64(zone.Gigabyte))
	c.answered = time.Now().Add(-2 * stands)
	is("has not answered for long", 0, 0)
	z.err = nil
	is("there again", 1, float64(zone.Gigabyte))
	z.err = fault.New(fault.NoZone, "none")
	is("gone", 0, 0)
}
