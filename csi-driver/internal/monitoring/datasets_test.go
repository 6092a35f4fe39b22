// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"stargate/csi-driver/internal/dataset"
	"stargate/csi-driver/internal/dataset/v1alpha1"
)

// The metrics show the copies of a node, with one label for namespace and name.
func TestDatasets(t *testing.T) {
	own := prometheus.NewRegistry()
	own.MustRegister(NewDatasets(func() []dataset.State {
		return []dataset.State{
			{Namespace: "models", Name: "llama", Fills: 2, NodeStatus: v1alpha1.NodeStatus{Phase: v1alpha1.Ready, Bytes: 1000, TotalBytes: 1000, Pods: 3}},
			{Namespace: "models", Name: "next", Failures: 4, NodeStatus: v1alpha1.NodeStatus{
				Phase: v1alpha1.Filling, Bytes: 400, TotalBytes: 1000, BytesPerSecond: 50, SecondsLeft: 12}},
		}
	}))
	families, err := own.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()] += fmt.Sprintf("%s %v, ", m.GetLabel()[0].GetValue(), m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	for name, values := range map[string][2]int{
		"ready": {1, 0}, "bytes": {1000, 400}, "total_bytes": {1000, 1000}, "fill_bytes_per_second": {0, 50}, "fill_left_seconds": {0, 12},
		"pods": {3, 0}, "fills_total": {2, 0}, "fill_failures_total": {0, 4},
	} {
		want := fmt.Sprintf("models/llama %d, models/next %d, ", values[0], values[1])
		if is := got["stargate_dataset_"+name]; is != want {
			t.Errorf("%s: %q, should be %q", name, is, want)
		}
	}
	if len(got) != 8 {
		t.Errorf("%d metrics: %v", len(got), got)
	}
}
