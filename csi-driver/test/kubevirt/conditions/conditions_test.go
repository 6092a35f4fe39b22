// SPDX-License-Identifier: Apache-2.0

//go:build kubevirt19

// Package conditions evaluates what the chart has in CEL, which an API server would: which objects the
// webhooks are asked about, and what the policy refuses. mk/run-chart calls it, with what helm renders.
package conditions

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"sigs.k8s.io/yaml"
)

var chart = flag.String("chart", "", "what helm has rendered")

type condition struct{ Name, Expression string }

// rendered is an object of the chart, as far as it has CEL.
type rendered struct {
	Kind     string
	Metadata struct{ Name string }
	Webhooks []struct {
		Name            string
		MatchConditions []condition
	}
	Spec struct {
		MatchConstraints struct {
			ResourceRules []struct{ Operations, Resources []string }
		}
		MatchConditions, Variables []condition
		Validations                []struct{ Expression, Message string }
	}
}

func objects(t *testing.T) []rendered {
	t.Helper()
	if *chart == "" {
		t.Skip("no -chart")
	}
	text, err := os.ReadFile(*chart)
	if err != nil {
		t.Fatal(err)
	}
	var all []rendered
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		if !bytes.Contains(part, []byte("apiVersion: admissionregistration.k8s.io/v1\n")) {
			continue // its spec is of another shape
		}
		var r rendered
		if err := yaml.Unmarshal(part, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// evaluate is one expression's value.
func evaluate(t *testing.T, expression string, in map[string]any) (any, error) {
	t.Helper()
	env, err := cel.NewEnv(ext.Strings(), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
		cel.Variable("request", cel.DynType), cel.Variable("variables", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := program.Eval(in)
	if err != nil {
		return nil, err
	}
	return v.Value(), nil
}

// all is what an API server makes of match conditions: one that is false decides, whatever the others are.
func all(t *testing.T, conditions []condition, in map[string]any) bool {
	t.Helper()
	var failed error
	for _, c := range conditions {
		v, err := evaluate(t, c.Expression, in)
		if err == nil && v == false {
			return false
		}
		if err != nil {
			failed = err
		}
	}
	if failed != nil {
		t.Errorf("the webhook would fail: %v", failed)
	}
	return true
}

func read(t *testing.T, text string) any {
	t.Helper()
	if text == "" {
		return nil
	}
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// TestWebhooks: which objects they are asked about.
func TestWebhooks(t *testing.T) {
	const (
		ours, theirs = `annotations: {stargate.csi.dev/volumes: data}`, `annotations: {other: x}`
		gone         = `deletionTimestamp: "2026-01-01T00:00:00Z"`
	)
	vm := func(metadata, template string) string {
		return `{metadata: {` + metadata + `}, spec: {runStrategy: Always, template: {` + template + `}}}`
	}
	vmi := func(metadata string) string { return `{metadata: {` + metadata + `}, spec: {domain: {}}, status: {}}` }
	named, running := vm("", "metadata: {"+ours+"}, spec: {domain: {cpu: {cores: 2}}}"), vmi(ours)
	for _, c := range []struct {
		kind, webhook, what, was, is string
		asked                        bool
	}{
		{"Validating", "templates", "made", "", named, true},
		{"Validating", "templates", "made without", "", vm("", "spec: {}"), false},
		{"Validating", "templates", "made with another annotation", "", vm("", "metadata: {"+theirs+"}"), false},
		{"Validating", "templates", "labelled", named, strings.Replace(named, "metadata: {", "metadata: {labels: {a: b}", 1), false},
		{"Validating", "templates", "stopped", named, strings.Replace(named, "Always", "Halted", 1), false},
		{"Validating", "templates", "changed", named, strings.Replace(named, "cores: 2", "cores: 3", 1), true},
		{"Validating", "templates", "named", vm("", "spec: {}"), named, true},
		{"Validating", "templates", "without a template until now", `{metadata: {}, spec: {}}`, named, true},
		{"Validating", "templates", "going away", named, strings.NewReplacer("{metadata: {}", "{metadata: {"+gone+"}", "cores: 2", "cores: 3").Replace(named), false},
		{"Validating", "templates", "named in the wrong place", "", vm(ours, "spec: {}"), true},
		{"Validating", "templates", "named there later", vm("", "spec: {}"), vm(ours, "spec: {}"), true},
		{"Validating", "templates", "stopped, and named there", vm(ours, "spec: {}"), strings.Replace(vm(ours, "spec: {}"), "Always", "Halted", 1), false},
		{"Validating", "machines", "made", "", running, true},
		{"Validating", "machines", "made without", "", vmi(""), false},
		{"Validating", "machines", "noted", running, strings.Replace(running, "status: {}", "status: {phase: Running}", 1), false},
		{"Validating", "machines", "other volumes", running, strings.Replace(running, ": data}", ": more}", 1), true},
		{"Validating", "machines", "no volumes any more", running, vmi(theirs), true},
		{"Validating", "machines", "volumes all of a sudden", vmi(""), running, true},
		{"Validating", "machines", "going away", running, vmi(gone), false},
		{"Validating", "launchers", "made", "", running, true},
		{"Validating", "launchers", "made without", "", vmi(theirs), false},
		{"Validating", "launchers", "noted", running, strings.Replace(running, "status: {}", "status: {phase: Running}", 1), false},
		{"Validating", "launchers", "other volumes", running, strings.Replace(running, ": data}", ": more}", 1), true},
		{"Validating", "launchers", "volumes all of a sudden", vmi(theirs), running, true},
		{"Validating", "launchers", "no volumes any more", running, vmi(theirs), false},
		{"Mutating", "machines", "made", "", running, true},
		{"Mutating", "machines", "made without", "", vmi(""), false},
		{"Mutating", "launchers", "made", "", running, true},
		{"Mutating", "launchers", "made without", "", vmi(theirs), false},
	} {
		operation := "CREATE"
		if c.was != "" {
			operation = "UPDATE"
		}
		in := map[string]any{"object": read(t, c.is), "oldObject": read(t, c.was), "request": map[string]any{"operation": operation}}
		found := false
		for _, r := range objects(t) {
			for _, w := range r.Webhooks {
				if r.Kind != c.kind+"WebhookConfiguration" || w.Name != c.webhook+".stargate.csi.dev" {
					continue
				}
				found = true
				if got := all(t, w.MatchConditions, in); got != c.asked {
					t.Errorf("%s %s, %s: asked: %v", c.kind, c.webhook, c.what, got)
				}
			}
		}
		if !found {
			t.Errorf("there is no webhook %s %s", c.kind, c.webhook)
		}
	}
}

// refusals are the policy's messages about a machine.
func refusals(t *testing.T, machine string) []string {
	t.Helper()
	return refusalsOf(t, "rel-webhook", map[string]any{
		"object": read(t, machine), "oldObject": nil, "request": map[string]any{"operation": "CREATE"},
	})
}

// refusalsOf are a policy's messages about a request.
func refusalsOf(t *testing.T, policy string, in map[string]any) []string {
	t.Helper()
	var said []string
	found := false
	for _, r := range objects(t) {
		if r.Kind != "ValidatingAdmissionPolicy" || r.Metadata.Name != policy {
			continue
		}
		found = true
		variables := map[string]any{}
		in["variables"] = variables
		if !all(t, r.Spec.MatchConditions, in) {
			return nil
		}
		for _, v := range r.Spec.Variables {
			value, err := evaluate(t, v.Expression, in)
			if err != nil {
				t.Fatal(err)
			}
			variables[v.Name] = value
		}
		for _, v := range r.Spec.Validations {
			fits, err := evaluate(t, v.Expression, in)
			if err != nil {
				said = append(said, err.Error())
			} else if fits != true {
				said = append(said, v.Message)
			}
		}
	}
	if !found {
		t.Errorf("there is no policy %s", policy)
	}
	return said
}

// TestPolicy: what it refuses, each with one sentence of its own.
func TestPolicy(t *testing.T) {
	for _, c := range []struct{ volumes, spec, words string }{
		{"data,models:ro", `domain: {devices: {}}`, ""},
		{"data", `architecture: amd64, evictionStrategy: None, domain: {cpu: {cores: 2}, memory: {guest: 1Gi}, devices: {}}`, ""},
		{"data", `domain: {devices: {interfaces: [{name: default, masquerade: {}}]}}`, ""},
		{"Data", `domain: {devices: {}}`, "names of claims"},
		{"data,data:ro", `domain: {devices: {}}`, "named twice"},
		{strings.Repeat("a,", 16) + "b", `domain: {devices: {}}`, "16 volumes"},
		{"data,models:ro", `volumes: [{name: a, containerDisk: {image: i}}, {name: b, persistentVolumeClaim: {claimName: models}}], domain: {devices: {}}`, "under spec.volumes"},
		{"data", `volumes: [{name: a, dataVolume: {name: data}}], domain: {devices: {}}`, "under spec.volumes"},
		{"data", `volumes: [{name: a, persistentVolumeClaim: {claimName: disk}}, {name: b, dataVolume: {name: other}}, {name: c, emptyDisk: {}}], domain: {devices: {}}`, ""},
		{"data", `volumes: [{name: a, persistentVolumeClaim: {claimName: data}}], domain: {devices: {filesystems: [{name: a, virtiofs: {}}]}}`, ""},
		{"data", `volumes: [{name: a, persistentVolumeClaim: {claimName: data}}], domain: {devices: {filesystems: [{name: b, virtiofs: {}}]}}`, "under spec.volumes"},
		{"data", `architecture: arm64, domain: {devices: {}}`, "amd64"},
		{"data", `domain: {launchSecurity: {sev: {}}, devices: {}}`, "encrypted"},
		{"data", `evictionStrategy: LiveMigrate, domain: {devices: {}}`, "cannot migrate"},
		{"data", `domain: {}`, ""},
		{"data", `domain: {devices: {hostDevices: [{name: x, deviceName: y}]}}`, "hostDevices have all memory"},
		{"data", `domain: {devices: {gpus: [{name: x, deviceName: y}]}}`, "gpus have all memory"},
		{"data", `domain: {devices: {gpus: [], interfaces: [{name: default, bridge: {}}, {name: fast, sriov: {}}]}}`, "sriov has all memory"},
		{"data", `domain: {cpu: {realtime: {}}, devices: {}}`, "realtime has all memory"},
		{"data", `domain: {memory: {reservedOverhead: {memLock: Required}}}`, "memLock has all memory"},
		{"data", `domain: {memory: {reservedOverhead: {memLock: NotRequired}}}`, ""},
	} {
		said := refusals(t, `{metadata: {annotations: {stargate.csi.dev/volumes: "`+c.volumes+`"}}, spec: {`+c.spec+`}}`)
		if c.words == "" && len(said) > 0 || c.words != "" && !strings.Contains(strings.Join(said, "\n"), c.words) {
			t.Errorf("%s, %s: %q, and not %q", c.volumes, c.spec, said, c.words)
		}
	}
	if said := refusals(t, `{metadata: {}, spec: {architecture: arm64, domain: {}}}`); said != nil {
		t.Errorf("a machine without volumes: %q", said)
	}
}

// TestBindings: the API server gives a pod the annotations of its binding. None of them makes it a machine's.
func TestBindings(t *testing.T) {
	for _, c := range []struct {
		what, metadata string
		refused        bool
	}{
		{"named", `{name: virt-launcher-x, annotations: {stargate.csi.dev/volumes: data}}`, true},
		{"with another annotation", `{name: virt-launcher-x, annotations: {other: x}}`, false},
		{"as schedulers make it", `{name: virt-launcher-x, uid: u}`, false},
	} {
		said := refusalsOf(t, "rel-webhook-bindings", map[string]any{"object": read(t, `{metadata: `+c.metadata+`, target: {kind: Node, name: n1}}`),
			"oldObject": nil, "request": map[string]any{"operation": "CREATE"}})
		if (len(said) > 0) != c.refused {
			t.Errorf("%s: %q", c.what, said)
		}
	}
	if said := refusalsOf(t, "rel-webhook-bindings", map[string]any{"object": read(t, `{target: {kind: Node, name: n1}}`), "oldObject": nil,
		"request": map[string]any{"operation": "CREATE"}}); said != nil {
		t.Errorf("without metadata: %q", said)
	}
	if *chart == "" {
		return
	}
	for _, r := range objects(t) {
		if r.Kind == "ValidatingAdmissionPolicy" && r.Metadata.Name == "rel-webhook-bindings" {
			var about []string
			for _, rule := range r.Spec.MatchConstraints.ResourceRules {
				about = append(about, rule.Resources...)
			}
			if !slices.Contains(about, "pods/binding") || !slices.Contains(about, "bindings") {
				t.Errorf("it is about %q", about)
			}
		}
	}
}
