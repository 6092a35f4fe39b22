// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"
)

// Outcomes of reviews.
const (
	allowed    = "allowed"
	refused    = "refused"
	unasked    = "unanswered"  // the API server has not answered in time, so the client retries
	turnedAway = "turned-away" // too many reviews at once, or a request that is no review
)

func newReviews() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stargate_webhook_reviews_total",
		Help: "Reviews of VMs, their pods and migrations, by outcome: allowed, refused, unanswered (the cluster did not answer in time), turned-away (too many reviews at once, or a request that is no review).",
	}, []string{"outcome"})
	for _, outcome := range []string{allowed, refused, unasked, turnedAway} {
		c.WithLabelValues(outcome)
	}
	return c
}

// Metrics counts the reviews, and reports the certificate in a folder.
func (r *Reviewer) Metrics(f Folder, log klog.Logger) []prometheus.Collector {
	return []prometheus.Collector{r.reviews, &life{
		folder: f, log: log,
		begins: prometheus.NewDesc("stargate_webhook_certificate_begins_seconds",
			"Time at which the webhook's certificate begins, in seconds since 1970.", nil, nil),
		expires: prometheus.NewDesc("stargate_webhook_certificate_expires_seconds",
			"Time at which the webhook's certificate ends, in seconds since 1970.", nil, nil),
	}}
}

// life reports the certificate's validity. It reads the certificate at each scrape.
type life struct {
	folder          Folder
	log             klog.Logger
	begins, expires *prometheus.Desc
}

// Describe sends the descriptions of the metrics.
func (e *life) Describe(ch chan<- *prometheus.Desc) {
	ch <- e.begins
	ch <- e.expires
}

// Collect sends no metric if the certificate cannot be read. In that case the pod is not ready.
func (e *life) Collect(ch chan<- prometheus.Metric) {
	c, err := e.folder.newest()
	if err != nil {
		e.log.Error(err, "The certificate cannot be read")
		return
	}
	ch <- prometheus.MustNewConstMetric(e.begins, prometheus.GaugeValue, float64(c.Leaf.NotBefore.Unix()))
	ch <- prometheus.MustNewConstMetric(e.expires, prometheus.GaugeValue, float64(c.Leaf.NotAfter.Unix()))
}
