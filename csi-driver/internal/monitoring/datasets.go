// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"github.com/prometheus/client_golang/prometheus"

	"stargate/csi-driver/internal/dataset"
	"stargate/csi-driver/internal/dataset/v1alpha1"
)

// Datasets collects the metrics about copies of data sets.
type Datasets struct {
	states                                func() []dataset.State
	ready, bytes, total, rate, left, pods *prometheus.Desc
	fills, failures                       *prometheus.Desc
}

// NewDatasets returns a collector that reads the states at each scrape.
func NewDatasets(states func() []dataset.State) *Datasets {
	// Prometheus would rename a label with the name namespace, which the scraped pod has, too.
	of := func(name, help string) *prometheus.Desc { return desc("dataset_"+name, help, "dataset") }
	return &Datasets{
		states:   states,
		ready:    of("ready", "1: the node has a complete copy of the data set."),
		bytes:    of("bytes", "Bytes of the data set that this node has."),
		total:    of("total_bytes", "Bytes of the complete data set; 0: not known yet."),
		rate:     of("fill_bytes_per_second", "Rate at which the node fills its copy."),
		left:     of("fill_left_seconds", "Estimated time until the copy is complete; 0: unknown."),
		pods:     of("pods", "Pods of this node that have the data set."),
		fills:    of("fills_total", "Copies that this driver has filled."),
		failures: of("fill_failures_total", "Tries to fill a copy that have failed."),
	}
}

func (c *Datasets) all() []*prometheus.Desc {
	return []*prometheus.Desc{c.ready, c.bytes, c.total, c.rate, c.left, c.pods, c.fills, c.failures}
}

// Describe sends the descriptions of the metrics.
func (c *Datasets) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.all() {
		ch <- d
	}
}

// Collect reads the states and sends the metrics.
func (c *Datasets) Collect(ch chan<- prometheus.Metric) {
	for _, s := range c.states() {
		name := s.Namespace + "/" + s.Name
		for d, n := range map[*prometheus.Desc]int64{
			c.ready: truth(s.Phase == v1alpha1.Ready), c.bytes: s.Bytes, c.total: s.TotalBytes,
			c.rate: s.BytesPerSecond, c.left: s.SecondsLeft, c.pods: s.Pods,
		} {
			ch <- gauge(d, n, name)
		}
		for d, n := range map[*prometheus.Desc]int64{c.fills: s.Fills, c.failures: s.Failures} {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), name)
		}
	}
}
