// SPDX-License-Identifier: Apache-2.0

package test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

func get(t testing.TB, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// The driver serves metrics for Prometheus and answers kubelet's probes.
func TestMetricsAndProbes(t *testing.T) {
	n := newNode(t, 256*mib, "512m")
	n.config.HTTP = freePort(t)
	n.start()
	n.create("seen", 32*mib)
	n.mounted("seen", "shut down")
	if _, err := n.CreateVolume(background, &csi.CreateVolumeRequest{}); err == nil {
		t.Error("a request without a name succeeds")
	}
	code, text := get(t, "http://"+n.config.HTTP+"/metrics")
	for _, line := range []string{
		`stargate_zone_up{kind="file"} 1`, "stargate_zone_size_bytes 2.68435456e+08", "stargate_zone_free_bytes 2.34881024e+08",
		`stargate_zone_largest_volume_bytes{alignment="2Mi"} 2.34881024e+08`, "stargate_zone_volumes 1",
		`stargate_volume_size_bytes{volume="seen"} 3.3554432e+07`, `stargate_volume_systems{volume="seen"} 0`,
		`stargate_mount_epochs_behind{volume="seen"} 3`, `stargate_mount_recoveries_total{volume="seen"} 1`,
		`stargate_mount_shut_down{volume="seen"} 1`, `stargate_mount_read_bytes_total{volume="seen"} 0`,
		`grpc_status_code="InvalidArgument",method_name="/csi.v1.Controller/CreateVolume"`, "go_goroutines",
	} {
		if code != http.StatusOK || !strings.Contains(text, line) {
			t.Errorf("metrics, %d: without %s:\n%s", code, line, text)
		}
	}
	for _, probe := range []string{"/healthz", "/readyz"} {
		if code, text := get(t, "http://"+n.config.HTTP+probe); code != http.StatusOK {
			t.Errorf("%s: %d %s", probe, code, text)
		}
	}
	second := newNode(t, 256*mib, "64m")
	second.config.HTTP = freePort(t)
	second.config.ZoneKind, second.config.ZoneName = "dax", "no-such-zone"
	second.start()
	if code, text := get(t, "http://"+second.config.HTTP+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("without a zone: /readyz: %d %s", code, text)
	}
	if code, text := get(t, "http://"+second.config.HTTP+"/healthz"); code != http.StatusOK {
		t.Errorf("without a zone: /healthz: %d %s", code, text)
	}
}
