// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	admission "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// These tests evaluate the chart's CEL expressions like an API server. A condition that fails or
// matches too much would block objects that have nothing to do with the driver.

var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(ext.Strings(), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
		cel.Variable("request", cel.DynType), cel.Variable("variables", cel.DynType))
})

// programs has the compiled expressions.
var programs = map[string]cel.Program{}

// evaluate returns the value of one expression.
func evaluate(t *testing.T, expression string, in map[string]any) (any, error) {
	t.Helper()
	program, compiled := programs[expression]
	if !compiled {
		env, err := environment()
		if err != nil {
			t.Fatal(err)
		}
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", expression, issues.Err())
		}
		if program, err = env.Program(ast); err != nil {
			t.Fatal(err)
		}
		programs[expression] = program
	}
	v, _, err := program.Eval(in)
	if err != nil {
		return nil, err
	}
	return v.Value(), nil
}

// all evaluates match conditions like an API server: if one condition is false, the result is
// false, even if other conditions fail.
func all(t *testing.T, conditions []admission.MatchCondition, in map[string]any) bool {
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
	check(t, failed == nil, "the webhook would fail: %v", failed)
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

// TestWebhooks checks which objects the API server sends to the webhooks.
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
		{"Validating", "templates", "created with another annotation", "", vm("", "metadata: {"+theirs+"}"), false},
		{"Validating", "templates", "labelled", named, strings.Replace(named, "metadata: {", "metadata: {labels: {a: b}", 1), false},
		{"Validating", "templates", "stopped", named, strings.Replace(named, "Always", "Halted", 1), false},
		{"Validating", "templates", "changed", named, strings.Replace(named, "cores: 2", "cores: 3", 1), true},
		{"Validating", "templates", "named", vm("", "spec: {}"), named, true},
		{"Validating", "templates", "gets its first template", `{metadata: {}, spec: {}}`, named, true},
		{"Validating", "templates", "going away", named, strings.NewReplacer("{metadata: {}", "{metadata: {"+gone+"}", "cores: 2", "cores: 3").Replace(named), false},
		{"Validating", "templates", "annotation in the wrong place", "", vm(ours, "spec: {}"), true},
		{"Validating", "templates", "named there later", vm("", "spec: {}"), vm(ours, "spec: {}"), true},
		{"Validating", "templates", "stopped, annotation in the wrong place", vm(ours, "spec: {}"), strings.Replace(vm(ours, "spec: {}"), "Always", "Halted", 1), false},
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
		conditions, there := conditionsOf(t, c.kind, c.webhook+".stargate.csi.dev")
		check(t, there, "there is no webhook %s %s", c.kind, c.webhook)
		got := all(t, conditions, in)
		check(t, got == c.asked, "%s %s, %s: asked: %v", c.kind, c.webhook, c.what, got)
	}
}

// conditionsOf returns the match conditions of the webhook with a name.
func conditionsOf(t *testing.T, kind, name string) ([]admission.MatchCondition, bool) {
	t.Helper()
	r := rendered(t, "sidecar")
	if kind == "Mutating" {
		for _, w := range get[*admission.MutatingWebhookConfiguration](t, r, "rel-webhook").Webhooks {
			if w.Name == name {
				return w.MatchConditions, true
			}
		}
		return nil, false
	}
	for _, w := range get[*admission.ValidatingWebhookConfiguration](t, r, "rel-webhook").Webhooks {
		if w.Name == name {
			return w.MatchConditions, true
		}
	}
	return nil, false
}

// refusals returns the policy's messages about a VM.
func refusals(t *testing.T, machine string) []string {
	t.Helper()
	return refusalsOf(t, "rel-webhook", map[string]any{
		"object": read(t, machine), "oldObject": nil, "request": map[string]any{"operation": "CREATE"},
	})
}

// refusalsOf returns a policy's messages about a request.
func refusalsOf(t *testing.T, policy string, in map[string]any) []string {
	t.Helper()
	name := "sidecar"
	if policy == "rel-csi-datasets" {
		name = "datasets"
	}
	spec := get[*admission.ValidatingAdmissionPolicy](t, rendered(t, name), policy).Spec
	variables := map[string]any{}
	in["variables"] = variables
	if !all(t, spec.MatchConditions, in) {
		return nil
	}
	for _, v := range spec.Variables {
		value, err := evaluate(t, v.Expression, in)
		if err != nil {
			t.Fatal(err)
		}
		variables[v.Name] = value
	}
	var said []string
	for _, v := range spec.Validations {
		fits, err := evaluate(t, v.Expression, in)
		if err != nil {
			said = append(said, err.Error())
		} else if fits != true {
			said = append(said, v.Message)
		}
	}
	return said
}

// fits checks the messages. One message must contain words; if words is empty, there must be no
// message.
func fits(t *testing.T, said []string, words, what string, about ...any) {
	t.Helper()
	ok := len(said) == 0
	if words != "" {
		ok = strings.Contains(strings.Join(said, "\n"), words)
	}
	check(t, ok, what+": %q, and not %q", append(about, said, words)...)
}

// TestPolicy checks that the policy has a message for each refusal.
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
		{"data", `domain: {devices: {hostDevices: [{name: x, deviceName: y}]}}`, "hostDevices lock all memory"},
		{"data", `domain: {devices: {gpus: [{name: x, deviceName: y}]}}`, "gpus lock all memory"},
		{"data", `domain: {devices: {gpus: [], interfaces: [{name: default, bridge: {}}, {name: fast, sriov: {}}]}}`, "sriov locks all memory"},
		{"data", `domain: {cpu: {realtime: {}}, devices: {}}`, "realtime locks all memory"},
		{"data", `domain: {memory: {reservedOverhead: {memLock: Required}}}`, "memLock locks all memory"},
		{"data", `domain: {memory: {reservedOverhead: {memLock: NotRequired}}}`, ""},
	} {
		said := refusals(t, `{metadata: {annotations: {stargate.csi.dev/volumes: "`+c.volumes+`"}}, spec: {`+c.spec+`}}`)
		fits(t, said, c.words, "%s, %s", c.volumes, c.spec)
	}
	fits(t, refusals(t, `{metadata: {}, spec: {architecture: arm64, domain: {}}}`), "", "a VM without volumes")
}

// TestBindings checks annotations of a pod's binding, which the API server copies to the pod. They
// must not turn the pod into a VM's pod.
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
		check(t, (len(said) > 0) == c.refused, "%s: %q", c.what, said)
	}
	fits(t, refusalsOf(t, "rel-webhook-bindings", map[string]any{"object": read(t, `{target: {kind: Node, name: n1}}`), "oldObject": nil,
		"request": map[string]any{"operation": "CREATE"}}), "", "without metadata")
	var about []string
	for _, rule := range get[*admission.ValidatingAdmissionPolicy](t, rendered(t, "sidecar"), "rel-webhook-bindings").
		Spec.MatchConstraints.ResourceRules {
		about = append(about, rule.Resources...)
	}
	contains(t, "resources of the policy", about, "pods/binding", "bindings")
}
