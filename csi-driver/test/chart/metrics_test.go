// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"stargate/csi-driver/internal/kubevirt/webhook"
	"stargate/csi-driver/internal/monitoring"
)

const runbooks = "docs/operate/kubernetes.md"

// rule is an alert, or a recorded series.
type rule struct {
	Alert, Record, Expr string
	Annotations         map[string]string
}

// prometheusRule has the fields of the object that these tests read.
type prometheusRule struct {
	Spec struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
}

func alertsOf(t *testing.T, name string) (alerts, all []rule) {
	t.Helper()
	for _, g := range other[prometheusRule](t, rendered(t, name), "PrometheusRule").Spec.Groups {
		for _, r := range g.Rules {
			all = append(all, r)
			if r.Alert != "" {
				alerts = append(alerts, r)
			}
		}
	}
	if len(alerts) == 0 {
		t.Fatalf("%s has no alerts", name)
	}
	return alerts, all
}

// measured returns the names of the driver's metrics.
func measured() []string {
	return namesOf(monitoring.NewCollector(nil, nil, nil, klog.Background()), monitoring.NewServers(nil), monitoring.NewDatasets(nil))
}

// measuredByWebhook returns the names of the webhook's metrics.
func measuredByWebhook() []string {
	return namesOf(webhook.New(webhook.Config{}, &webhook.Cluster{}).Metrics(webhook.Folder{}, klog.Background())...)
}

func namesOf(collectors ...prometheus.Collector) []string {
	described := make(chan *prometheus.Desc)
	go func() {
		for _, c := range collectors {
			c.Describe(described)
		}
		close(described)
	}()
	var names []string
	for d := range described {
		names = append(names, regexp.MustCompile(`fqName: "([a-z_0-9]+)"`).FindStringSubmatch(d.String())[1])
	}
	return sorted(names)
}

var ourMetrics = regexp.MustCompile(`\bstargate_[a-z_0-9]+`)

// shown returns the dashboard's queries.
func shown(t *testing.T) []string {
	t.Helper()
	var dashboard any
	if err := json.Unmarshal([]byte(readFile(t, "charts/stargate/dashboards/stargate.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	var queries []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for key, one := range v {
				if text, is := one.(string); is && key == "expr" {
					queries = append(queries, text)
				}
				walk(one)
			}
		}
	}
	walk(dashboard)
	return sorted(queries)
}

func TestPodMonitor(t *testing.T) {
	type monitor struct {
		Spec struct {
			PodMetricsEndpoints []map[string]any
		}
	}
	endpoints := other[monitor](t, rendered(t, "more"), "PodMonitor").Spec.PodMetricsEndpoints
	equal(t, "endpoints", len(endpoints), 1)
	// The timeout is long, because the driver takes long to read a zone with many volumes.
	equal(t, "scrapeTimeout", endpoints[0]["scrapeTimeout"], "30s")
	// Dashboard and alerts show names of nodes, not addresses of pods.
	equal(t, "instance", endpoints[0]["relabelings"], []any{map[string]any{
		"sourceLabels": []any{"__meta_kubernetes_pod_node_name"}, "targetLabel": "instance"}})
}

// TestWebhookMonitor checks the separate monitor of the webhook's metrics. The webhook's pods have
// other labels than the driver's pods, and do not run on each node.
func TestWebhookMonitor(t *testing.T) {
	r := rendered(t, "monitored")
	at := slices.IndexFunc(r.objects, func(o object) bool {
		return o.GetObjectKind().GroupVersionKind().Kind == "PodMonitor" && o.GetName() == "rel-webhook"
	})
	check(t, at >= 0, "there is no monitor of the webhook")
	if at < 0 {
		return
	}
	text, err := json.Marshal(r.objects[at])
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Spec struct {
			Selector            metav1.LabelSelector
			PodMetricsEndpoints []struct{ Port string }
		}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	equal(t, "its pods", m.Spec.Selector.MatchLabels, map[string]string{"app.kubernetes.io/name": "stargate-webhook", "app.kubernetes.io/instance": "rel"})
	equal(t, "its port", m.Spec.PodMetricsEndpoints[0].Port, "metrics")
	lacks(t, rendered(t, "linked"), "StargateCertificateEnds") // there is no webhook
}

func TestDashboard(t *testing.T) {
	found := list[*corev1.ConfigMap](rendered(t, "more"))
	equal(t, "dashboards", len(found), 1)
	m := found[0]
	equal(t, "namespace", m.Namespace, "monitoring")
	equal(t, "Grafana's label", m.Labels["grafana_dashboard"], "1")
	equal(t, "the operator's label", m.Labels["team"], "storage")
	equal(t, "its text", strings.TrimSpace(m.Data["stargate.json"]),
		strings.TrimSpace(readFile(t, "charts/stargate/dashboards/stargate.json")))
	queried := sorted(ourMetrics.FindAllString(strings.Join(shown(t), "\n"), -1))
	equal(t, "metrics of the dashboard, and of the driver", slices.Compact(queried), measured())
}

func TestAlerts(t *testing.T) {
	alerts, all := alertsOf(t, "monitored")
	// The driver or the webhook has each metric that a rule reads.
	for _, r := range all {
		contains(t, "metrics of driver and webhook", append(measured(), measuredByWebhook()...), ourMetrics.FindAllString(r.Expr, -1)...)
	}
	places := regexp.MustCompile(`(?m)^### (\S+)$`).FindAllStringSubmatch(readFile(t, runbooks), -1)
	var headings []string
	for _, p := range places {
		headings = append(headings, strings.ToLower(p[1]))
	}
	tried := readFile(t, "charts/tests/alerts.yaml") + readFile(t, "charts/tests/alerts-long.yaml")
	exprs, summaries := []string{}, []string{}
	for _, r := range alerts {
		exprs, summaries = append(exprs, r.Expr), append(summaries, r.Annotations["summary"])
		place, is := strings.CutPrefix(r.Annotations["runbook"], runbooks+"#")
		check(t, is, "%s has no runbook: %v", r.Alert, r.Annotations)
		contains(t, "sections of the runbook", headings, strings.ToLower(place))
		check(t, regexp.MustCompile(`alertname: `+r.Alert+`\n`).MatchString(tried), "no test has %s fire", r.Alert)
	}
	contains(t, "expressions of alerts", exprs, `up{job="ns/rel-csi"} == 0`, `up{job="ns/rel-webhook"} == 0`)
	// Prometheus replaces these braces. Helm must leave them as they are.
	check(t, strings.Contains(strings.Join(summaries, "\n"),
		"Volume {{ $labels.volume }} on {{ $labels.instance }} cannot be used"), "summaries: %q", summaries)

	links, _ := alertsOf(t, "linked")
	for _, r := range links {
		equal(t, "the link of "+r.Alert, r.Annotations["runbook_url"],
			"https://runbooks.example/kubernetes.md#"+strings.ToLower(r.Alert))
		// Without a PodMonitor, Prometheus has no metric `up` of the driver.
		check(t, r.Alert != "StargateDriverDown", "there is an alert StargateDriverDown")
	}
	lacks(t, rendered(t, "linked"), "StargateDriverDown", "StargateWebhookDown")
}

// TestPrometheus checks with promtool that the rules can be parsed, and that each alert fires as
// charts/tests expects. It also parses the dashboard's queries, with values in place of Grafana's
// variables.
func TestPrometheus(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, what any) string {
		text, err := yaml.Marshal(what)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	promtool := func(args ...string) {
		said, err := run("mk/tools/promtool", args...)
		check(t, err == nil, "promtool %q: %v: %s", args, err, said)
	}
	promtool("check", "rules", write("rules.yaml", other[map[string]any](t, rendered(t, "monitored"), "PrometheusRule")["spec"]))
	var tests []string
	for _, name := range []string{"alerts.yaml", "alerts-long.yaml"} {
		tests = append(tests, filepath.Join(dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(readFile(t, "charts/tests/"+name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	promtool(append([]string{"test", "rules"}, tests...)...)
	var recorded []map[string]string
	for i, q := range shown(t) {
		q = regexp.MustCompile(`\$[a-z]+`).ReplaceAllString(strings.ReplaceAll(q, "$__rate_interval", "1m"), ".*")
		recorded = append(recorded, map[string]string{"record": fmt.Sprintf("shown:%d", i), "expr": q})
	}
	equal(t, "queries", len(recorded), strings.Count(readFile(t, "charts/stargate/dashboards/stargate.json"), `"expr"`))
	promtool("check", "rules", "--lint=none",
		write("shown.yaml", map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": recorded}}}))
}
