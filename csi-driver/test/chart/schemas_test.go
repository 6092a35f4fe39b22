// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
)

// TestLint runs `helm lint --strict`.
func TestLint(t *testing.T) {
	// The cluster tests use the helm command (mk/tools/helm). The command and the library must
	// have the same version.
	program := regexp.MustCompile(`(?m)^HELM_VERSION=(.*)$`).FindStringSubmatch(readFile(t, "versions.env"))
	library := regexp.MustCompile(`(?m)^\thelm.sh/helm/v3 (\S+)$`).FindStringSubmatch(readFile(t, "csi-driver/test/chart/go.mod"))
	equal(t, "the version of Helm", library[1], program[1])
	version, err := chartutil.ParseKubeVersion(oldest())
	if err != nil {
		t.Fatal(err)
	}
	lint := action.NewLint()
	lint.Strict, lint.Namespace, lint.KubeVersion = true, "default", version
	result := lint.Run([]string{folder}, map[string]any{})
	equal(t, "charts", result.TotalChartsLinted, 1)
	check(t, len(result.Errors) == 0, "%v", result.Errors)
}

// TestTableOfValues checks that charts/VALUES.md matches values.yaml and its schema.
func TestTableOfValues(t *testing.T) {
	table, err := run("mk/tools/chart-values")
	check(t, err == nil && table == readFile(t, "charts/VALUES.md"),
		"charts/VALUES.md is old; run mk/tools/chart-values >charts/VALUES.md: %v", err)
}

// TestStrictReading checks that each rendering can be decoded strictly, and that decoding finds
// mistakes.
func TestStrictReading(t *testing.T) {
	for name := range renderings {
		check(t, len(rendered(t, name).objects) > 10, "%s has few objects", name)
	}
	for _, c := range []struct{ what, kind, from, to string }{
		{"an unknown key", "CSIDriver", "fsGroupPolicy:", "fsGroupPolice:"},
		{"a key twice", "CSIDriver", "fsGroupPolicy: None", "fsGroupPolicy: None\n  fsGroupPolicy: File"},
		{"a wrong quantity", "DaemonSet", "memory: 256Mi", "memory: 256Mo"},
		{"a wrong number", "Job", "backoffLimit: 0", "backoffLimit: none"},
		{"an unknown kind", "DaemonSet", "kind: DaemonSet", "kind: DemonSet"},
		{"an unknown version", "Job", "apiVersion: batch/v1", "apiVersion: batch/v9"},
	} {
		_, err := decode(changed(t, "dax", c.kind, c.from, c.to))
		check(t, err != nil, "%s is taken", c.what)
		if c.to == "fsGroupPolice:" {
			check(t, strings.Contains(fmt.Sprint(err), "fsGroupPolice"), "the error does not name the wrong key: %v", err)
		}
	}
}

// documents returns the text of each object.
func documents(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	if err := each(text, func(one []byte) error {
		all = append(all, string(one))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// changed returns the first object of a kind, in which the first match of a pattern is replaced.
func changed(t *testing.T, name, kind, from, to string) string {
	t.Helper()
	for _, one := range documents(t, rendered(t, name).text) {
		if strings.Contains("\n"+one, "\nkind: "+kind+"\n") {
			return replaced(t, one, from, to)
		}
	}
	t.Fatalf("%s has no %s", name, kind)
	return ""
}

func replaced(t *testing.T, text, from, to string) string {
	t.Helper()
	at := regexp.MustCompile(from).FindStringIndex(text)
	if at == nil {
		t.Fatalf("%s is nowhere", from)
	}
	return text[:at[0]] + to + text[at[1]:]
}

// TestSchemas checks that each object of the chart and of the examples matches the schemas of
// Kubernetes and of the other projects (mk/tools/kubeconform). It also checks that the schemas
// detect some mistakes.
func TestSchemas(t *testing.T) {
	versions := regexp.MustCompile(`(?m)^SCHEMAS_KUBERNETES=(.*)$`).FindStringSubmatch(readFile(t, "versions.env"))
	kubernetes := strings.Split(versions[1], ",")
	equal(t, "the oldest Kubernetes with schemas", kubernetes[0], "v"+oldest())

	dir := t.TempDir()
	var right, wrong []string
	write := func(to *[]string, name, text string) {
		path := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		*to = append(*to, path)
	}
	// If several renderings have the same object, the test writes it once.
	written := map[string]bool{}
	for name := range renderings {
		text := ""
		for _, one := range documents(t, rendered(t, name).text) {
			if !written[one] {
				text += "---\n" + one
			}
			written[one] = true
		}
		write(&right, name, text)
	}
	write(&right, "two-pods", readFile(t, "docs/examples/two-pods.yaml"))
	examples, err := filepath.Glob(filepath.Join(home, "kubevirt-manifests/*.yaml"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	var minimal string
	for _, path := range examples {
		text := readFile(t, filepath.Join("kubevirt-manifests", filepath.Base(path)))
		// The test has no schema of CDI.
		text = regexp.MustCompile(`(?ms)^apiVersion: cdi.*?(^---$|\z)`).ReplaceAllString(text, "")
		write(&right, "example-"+strings.TrimSuffix(filepath.Base(path), ".yaml"), text)
		if filepath.Base(path) == "minimal.yaml" {
			minimal = text
		}
	}
	mistakes := []struct{ what, text, words string }{
		{"unknown-key", changed(t, "dax", "CSIDriver", "fsGroupPolicy", "fsGroupPolice"), "additional properties 'fsGroupPolice'"},
		{"text-for-a-number", changed(t, "dax", "Job", `backoffLimit: \d+`, "backoffLimit: none"), "want integer"},
		{"no-selector", changed(t, "dax", "DaemonSet", `(?s)  selector:\n.*?  updateStrategy:`, "  updateStrategy:"),
			"missing property 'selector'"},
		{"monitor", changed(t, "more", "PodMonitor", "podMetricsEndpoints", "podMetricEndpoints"), "additional properties 'podMetricEndpoints'"},
		{"alert", changed(t, "more", "PrometheusRule", "- alert: ", "- alarm: "), "additional properties 'alarm'"},
		{"snapshot-class", changed(t, "snapshots", "VolumeSnapshotClass", `(?m)^deletionPolicy: Retain`, "deletionPolicy: Keep"), "one of 'Delete', 'Retain'"},
		{"certificate", changed(t, "plugin", "Certificate", "issuerRef:", "issuer:"), "missing property 'issuerRef'"},
		{"plugin", changed(t, "plugin", "Plugin", "permittedHooks", "permittedHook"), "missing property 'permittedHooks'"},
		{"machine", replaced(t, minimal, "runStrategy:", "runStrategie:"), "additional properties 'runStrategie'"},
	}
	for _, m := range mistakes {
		write(&wrong, "wrong-"+m.what, m.text)
	}
	said, _ := run("mk/tools/kubeconform", append(right, wrong...)...)
	equal(t, "versions of Kubernetes", len(strings.Split("\n"+said, "\nKubernetes v"))-1, len(kubernetes))
	for _, version := range kubernetes {
		_, part, _ := strings.Cut(said, "Kubernetes "+version+":\n")
		part, _, _ = strings.Cut(part, "\nKubernetes v")
		about := func(path string) string {
			var lines []string
			for _, line := range strings.Split(part, "\n") {
				if strings.HasPrefix(line, path+" ") {
					lines = append(lines, line)
				}
			}
			return strings.Join(lines, "\n")
		}
		for _, path := range right {
			check(t, about(path) == "", "%s: %s", version, about(path))
		}
		for i, m := range mistakes {
			check(t, strings.Contains(about(wrong[i]), m.words), "%s: %s: without %q: %s", version, m.what, m.words, about(wrong[i]))
		}
		// kubeconform must have read all files, and found all schemas.
		summary := regexp.MustCompile(`Summary: (\d+) resources found in (\d+) files - Valid: \d+, Invalid: (\d+), Errors: (\d+), Skipped: 0`).
			FindStringSubmatch(part)
		if summary == nil {
			t.Fatalf("%s: no summary: %s", version, said)
		}
		equal(t, version+": files, mistakes, errors", summary[2:], []string{fmt.Sprint(len(right) + len(wrong)), fmt.Sprint(len(wrong)), "0"})
	}
}
