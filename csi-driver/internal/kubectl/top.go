// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// Scraper reads the metrics of a driver's pod.
type Scraper interface {
	Scrape(ctx context.Context, pod *corev1.Pod) (io.ReadCloser, error)
}

// Proxy reads metrics through the API server.
type Proxy struct{ Client kubernetes.Interface }

// Scrape needs the right to get pods/proxy.
func (p Proxy) Scrape(ctx context.Context, pod *corev1.Pod) (io.ReadCloser, error) {
	port, err := portOf(pod)
	if err != nil {
		return nil, err
	}
	return p.Client.CoreV1().RESTClient().Get().Namespace(pod.Namespace).Resource("pods").
		Name(fmt.Sprintf("%s:%d", pod.Name, port)).SubResource("proxy").Suffix("metrics").Stream(ctx)
}

// portOf returns the number of the port with metrics. The API server knows no names of pods' ports.
func portOf(pod *corev1.Pod) (int32, error) {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == metricsPort {
				return p.ContainerPort, nil
			}
		}
	}
	return 0, errors.New("the driver has no port for metrics (the chart's metrics.port)")
}

// Use is the use that a node makes of a volume: per second, except Systems and Used.
type Use struct {
	Namespace string  `json:"namespace"`
	Claim     string  `json:"claim"`
	Node      string  `json:"node"`
	Volume    string  `json:"volume"`
	Systems   int     `json:"systems"` // number of systems in the mount table
	Used      int64   `json:"used"`    // used bytes of the volume
	Mounted   bool    `json:"mounted"` // the node's module has mounted the volume; the rates are those of this mount
	Reads     float64 `json:"reads"`
	ReadBytes float64 `json:"readBytes"`
	Writes    float64 `json:"writes"`
	Written   float64 `json:"writtenBytes"`
	Commits   float64 `json:"commits"`
	LockWaits float64 `json:"lockWaits"`
}

// A sample has the metrics of all drivers, by node, at one time.
type sample struct {
	at    time.Time
	nodes map[string]map[string]*dto.MetricFamily
}

// Top returns the use of volumes during an interval.
func (f *Facts) Top(ctx context.Context, scraper Scraper, interval time.Duration, namespace string) ([]Use, error) {
	first, err := f.scrape(ctx, scraper)
	if err != nil && len(first.nodes) == 0 {
		return nil, err
	}
	select {
	case <-time.After(interval):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	second, err := f.scrape(ctx, scraper)
	if len(second.nodes) == 0 {
		return nil, cmp.Or(err, errors.New("no node runs the driver"))
	}
	return f.compare(first, second, namespace), err
}

// scrape reads the metrics of all drivers that answer. Its error names the nodes of the others.
func (f *Facts) scrape(ctx context.Context, scraper Scraper) (sample, error) {
	s := sample{time.Now(), map[string]map[string]*dto.MetricFamily{}}
	var errs []error
	for i := range f.Drivers {
		d := &f.Drivers[i]
		if d.Spec.NodeName == "" || d.DeletionTimestamp != nil {
			continue
		}
		families, err := read(ctx, scraper, d)
		if err != nil {
			errs = append(errs, fmt.Errorf("metrics of node %s: %w", d.Spec.NodeName, err))
			continue
		}
		s.nodes[d.Spec.NodeName] = families
	}
	return s, errors.Join(errs...)
}

func read(ctx context.Context, scraper Scraper, pod *corev1.Pod) (map[string]*dto.MetricFamily, error) {
	body, err := scraper.Scrape(ctx, pod)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(body)
}

// of returns the value of a metric of a volume.
func of(families map[string]*dto.MetricFamily, name, volume string) (value float64, found bool) {
	for _, m := range families["stargate_"+name].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "volume" && l.GetValue() == volume {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue(), true
			}
		}
	}
	return 0, false
}

// compare returns the use of all volumes, the busiest first. A counter that has become smaller
// belongs to a later mount, and counts from 0.
func (f *Facts) compare(first, second sample, namespace string) []Use {
	uses := []Use{}
	seconds := second.at.Sub(first.at).Seconds()
	for _, v := range f.VolumesOf(namespace) {
		now, found := second.nodes[v.Node]
		if !found {
			continue
		}
		before := first.nodes[v.Node]
		rate := func(name string) float64 {
			is, _ := of(now, name, v.Name)
			was, known := of(before, name, v.Name)
			if !known || seconds <= 0 {
				return 0
			}
			if was > is {
				was = 0
			}
			return (is - was) / seconds
		}
		systems, _ := of(now, "volume_systems", v.Name)
		used, _ := of(now, "volume_used_bytes", v.Name)
		_, mounted := of(now, "mount_reads_total", v.Name)
		uses = append(uses, Use{
			Namespace: v.Namespace, Claim: v.Claim, Node: v.Node, Volume: v.Name,
			Systems: int(systems), Used: int64(used), Mounted: mounted,
			Reads: rate("mount_reads_total"), ReadBytes: rate("mount_read_bytes_total"),
			Writes: rate("mount_writes_total"), Written: rate("mount_written_bytes_total"),
			Commits: rate("mount_commits_total"), LockWaits: rate("mount_lock_waits_total"),
		})
	}
	slices.SortStableFunc(uses, func(a, b Use) int { return cmp.Compare(b.Reads+b.Writes+b.Commits, a.Reads+a.Writes+a.Commits) })
	return uses
}

// PrintUses prints a table. A volume that its node has not mounted has no rates: VMs and servers of
// mounts by FUSE count their own calls.
func PrintUses(out io.Writer, uses []Use) error {
	t := newTable(out, "NAMESPACE", "CLAIM", "NODE", "SYSTEMS", "USED", "READS/S", "READ/S", "WRITES/S", "WRITTEN/S", "COMMITS/S", "LOCK-WAITS/S")
	for _, u := range uses {
		cells := []string{cmp.Or(u.Namespace, "-"), cmp.Or(u.Claim, "-"), u.Node, fmt.Sprint(u.Systems), printSize(u.Used)}
		for _, value := range []string{
			printRate(u.Reads), printSize(int64(u.ReadBytes)), printRate(u.Writes), printSize(int64(u.Written)),
			printRate(u.Commits), printRate(u.LockWaits),
		} {
			if !u.Mounted {
				value = "-"
			}
			cells = append(cells, value)
		}
		t.row(cells...)
	}
	return t.end()
}

func printRate(r float64) string {
	if r < 10 && r > 0 {
		return fmt.Sprintf("%.1f", r)
	}
	return fmt.Sprintf("%.0f", r)
}
