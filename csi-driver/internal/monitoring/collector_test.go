// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

// silent is a zone that may not answer.
type silent struct {
	pool.Nothing
	err error
}

func (s *silent) Status(context.Context) (pool.Status, error) {
	return pool.Status{Size: pool.Gigabyte}, s.err
}

// told is a Cluster with given numbers.
type told struct {
	orphans map[string]int64
	unbound int64
}

func (o *told) Orphans() map[string]int64 { return o.orphans }
func (o *told) Unbound() int64            { return o.unbound }

// After a failed read, the collector keeps the earlier metrics for a while. The absence of a zone
// is a result, not a failure.
func TestFailedLooks(t *testing.T) {
	z := &silent{}
	of := &told{}
	c := NewCollector(z, kernelmodule.New(t.TempDir()), of, klog.Background())
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
	is("there", 1, float64(pool.Gigabyte))
	if n, shown := look()["stargate_zone_orphans"]; shown {
		t.Errorf("the number is unknown, but the metric is %v", n)
	}
	of.orphans, of.unbound = map[string]int64{"claim": 3}, 2
	if seen := look(); seen["stargate_zone_orphans"] != 3 || seen["stargate_claims_unbound"] != 2 {
		t.Errorf("%v", seen)
	}
	z.err = errkind.New(errkind.NoAnswer, "deadline exceeded")
	is("does not answer", 1, float64(pool.Gigabyte))
	c.answered = time.Now().Add(-2 * stands)
	is("has not answered for long", 0, 0)
	z.err = nil
	is("there again", 1, float64(pool.Gigabyte))
	z.err = errkind.New(errkind.NoZone, "none")
	is("gone", 0, 0)
}

// full is a zone with a volume. Its list of volumes may fail or take long.
type full struct {
	silent
	list error
	slow bool
}

func (f *full) Glances(context.Context) ([]pool.Glance, error) {
	return []pool.Glance{{Volume: pool.Volume{Name: "v", Path: "/zone/v", State: pool.InUse, Size: pool.Gigabyte}}}, f.list
}

func (f *full) Space(ctx context.Context, _ pool.Volume) (stargatectl.Space, error) {
	if f.slow {
		<-ctx.Done()
		return stargatectl.Space{}, ctx.Err()
	}
	return stargatectl.Space{Used: 5}, nil
}

func (f *full) Taken(ctx context.Context, _ pool.Volume) (int, error) { return 2, ctx.Err() }

// families returns the metrics of a scrape, by name.
func families(t *testing.T, seen []prometheus.Metric) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, m := range seen {
		var is dto.Metric
		if err := m.Write(&is); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(m.Desc().String(), `Desc{fqName: "`), `"`)
		values[name] = is.GetGauge().GetValue() + is.GetCounter().GetValue()
	}
	return values
}

// An interrupted read counts as failed. The metrics of volumes remain.
func TestFailedLooksAtVolumes(t *testing.T) {
	z := &full{}
	c := NewCollector(z, kernelmodule.New(t.TempDir()), nil, klog.Background())
	used := func(when string, want float64, limit time.Duration) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		c.refresh(ctx)
		if got := families(t, c.seen)["stargate_volume_used_bytes"]; got != want {
			t.Errorf("%s: %v, should be %v", when, got, want)
		}
	}
	used("there", 5, time.Minute)
	z.slow = true
	used("too slow", 5, time.Millisecond)
	z.slow, z.list = false, errkind.New(errkind.NoAnswer, "deadline exceeded")
	used("not listed", 5, time.Minute)
	c.answered = time.Now().Add(-2 * stands)
	used("not listed for long", 0, time.Minute)
}

// A mount that only reads acknowledges no epochs, and no epoch waits for it.
func TestEpochsBehind(t *testing.T) {
	sysfs := t.TempDir()
	dir := filepath.Join(sysfs, "dm-0")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	module := kernelmodule.NewFor(sysfs, func(path string) string { return path })
	c := NewCollector(&full{}, module, nil, klog.Background())
	for _, k := range []struct {
		slot, epoch string
		want        float64
		shown       bool
	}{
		{"0", "volume 12\nacknowledged 9\n", 3, true},
		{"0", "volume 12\nacknowledged 13\n", 0, true},
		{"-1", "volume 12\nacknowledged 0\n", 0, false},
	} {
		for name, text := range map[string]string{
			"dev": "/zone/v", "state": "writable", "slot": k.slot, "epoch": k.epoch, "operations": "reads 7\n", "journal": "", "errors": "",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		c.refresh(context.Background())
		seen := families(t, c.seen)
		if got, shown := seen["stargate_mount_epochs_behind"]; got != k.want || shown != k.shown || seen["stargate_mount_reads_total"] != 7 {
			t.Errorf("slot %s, %q: %v", k.slot, k.epoch, seen)
		}
	}
}
