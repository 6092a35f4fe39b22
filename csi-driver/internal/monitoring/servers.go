// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"github.com/prometheus/client_golang/prometheus"

	"stargate/csi-driver/internal/keeper"
)

// Servers collects the metrics about mounts by FUSE.
type Servers struct {
	status               func() keeper.Status
	up, mounts, restarts *prometheus.Desc
}

// NewServers returns a collector that reads the status at each scrape.
func NewServers(status func() keeper.Status) *Servers {
	return &Servers{
		status:   status,
		up:       desc("fuse_keeper_up", "1: the keeper of mounts by FUSE answers."),
		mounts:   desc("fuse_mounts", "Mounts by FUSE on this node: each has a server."),
		restarts: desc("fuse_server_restarts_total", "Servers that another server has replaced.", "volume"),
	}
}

// Describe sends the descriptions of the metrics.
func (s *Servers) Describe(ch chan<- *prometheus.Desc) {
	ch <- s.up
	ch <- s.mounts
	ch <- s.restarts
}

// Collect reads the status and sends the metrics.
func (s *Servers) Collect(ch chan<- prometheus.Metric) {
	status := s.status()
	up := 0.0
	if status.Up {
		up = 1
	}
	ch <- prometheus.MustNewConstMetric(s.up, prometheus.GaugeValue, up)
	ch <- prometheus.MustNewConstMetric(s.mounts, prometheus.GaugeValue, float64(status.Held))
	for volume, n := range status.Restarts {
		ch <- prometheus.MustNewConstMetric(s.restarts, prometheus.CounterValue, float64(n), volume)
	}
}
