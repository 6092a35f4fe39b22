// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const webhookOwner = "Deployment rel-webhook"

// TestWebhookTakesItsFlags checks that the real program accepts the chart's flags.
func TestWebhookTakesItsFlags(t *testing.T) {
	for _, c := range []struct {
		name string
		has  []string
	}{
		{"sidecar", []string{"--api=sidecar", "--zone-of-files", "--certificates=/certificates", "--http=:9811"}},
		{"plugin", []string{"--api=plugin", "--plugin=rel-csi", "--hook-image=hook:" + version(), "--certificates=/certificates"}},
	} {
		args := container(t, rendered(t, c.name), webhookOwner, "webhook").Args
		contains(t, "the webhook's flags", args, c.has...)
		takes(t, "build/csi/stargate-webhook", args, 5)
	}
	lacks(t, rendered(t, "plugin"), "image: hook:") // the webhook runs the driver's image
}

// TestWebhookProbes checks that probes use a separate port. Any pod can hold all connections of the
// webhook's port, and kubelet would then restart the webhook.
func TestWebhookProbes(t *testing.T) {
	c := container(t, rendered(t, "sidecar"), webhookOwner, "webhook")
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	equal(t, "ports", ports, map[string]int32{"https": 9443, "metrics": 9811})
	for path, probe := range map[string]*corev1.Probe{"/readyz": c.ReadinessProbe, "/healthz": c.LivenessProbe} {
		equal(t, path+": port", probe.HTTPGet.Port.String(), "metrics")
		equal(t, path+": path", probe.HTTPGet.Path, path)
		equal(t, path+": scheme", probe.HTTPGet.Scheme, corev1.URIScheme(""))
	}
	for with, want := range map[string]string{
		"tellCluster=true": "9443 9811", "metrics.port=0": "9443",
		"kubevirt.webhook.apiServers={192.0.2.1/32,2001:db8::/64}": "9443 from 192.0.2.1/32 2001:db8::/64 9811",
	} {
		s := set("kubevirt.enabled=true", with)
		text, err := template(s)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decode(text)
		if err != nil {
			t.Fatal(err)
		}
		var open []string
		for _, rule := range get[*networking.NetworkPolicy](t, &rendering{with, text, objects}, "rel-webhook").Spec.Ingress {
			for _, p := range rule.Ports {
				open = append(open, p.Port.String())
			}
			for i, peer := range rule.From {
				open = append(open, strings.Repeat("from ", 1-min(i, 1))+peer.IPBlock.CIDR)
			}
		}
		equal(t, "ports that other pods can reach, with "+with, strings.Join(open, " "), want)
	}
}

// TestWebhookLeaves checks the time that the webhook waits before it ends. API servers get to know
// with a delay that a pod of the webhook ends, and still connect to it. Without this time, they
// would refuse VMs at each upgrade, and when a node is drained.
func TestWebhookLeaves(t *testing.T) {
	p := podOf(t, rendered(t, "sidecar"), webhookOwner)
	stop := container(t, rendered(t, "sidecar"), webhookOwner, "webhook").Lifecycle
	if stop == nil || stop.PreStop == nil || stop.PreStop.Sleep == nil {
		t.Fatalf("it ends at once: %+v", stop)
	}
	check(t, stop.PreStop.Sleep.Seconds >= 3, "it waits for %d s", stop.PreStop.Sleep.Seconds)
	grace := int64(30)
	if p.spec.TerminationGracePeriodSeconds != nil {
		grace = *p.spec.TerminationGracePeriodSeconds
	}
	check(t, stop.PreStop.Sleep.Seconds+10 < grace, "reviews have no time to end in %d s", grace)
}

func TestPlugin(t *testing.T) {
	type hook struct {
		Socket, Condition, FailureStrategy string
		PermittedHooks                     []string
	}
	type plugin struct {
		Metadata struct{ Name string }
		Spec     struct {
			Condition   string
			DomainHooks []struct{ Sidecar struct{ SocketPath string } }
			NodeHooks   []hook
		}
	}
	p := other[plugin](t, rendered(t, "plugin"), "Plugin")
	equal(t, "name", p.Metadata.Name, "rel-csi")
	equal(t, "condition", p.Spec.Condition, "'other.example/volumes' in vmi.Annotations")
	equal(t, "hooks of a domain", len(p.Spec.DomainHooks), 1)
	equal(t, "the sidecar's socket", p.Spec.DomainHooks[0].Sidecar.SocketPath, "/var/run/kubevirt-plugin/rel-csi/hook.sock")
	const socket = "/var/run/kubevirt/plugins/other.example.sock"
	const asked = "has(vmi.metadata.annotations) && 'other.example/volumes' in vmi.metadata.annotations"
	// A VM that has ended can be deleted even if the driver does not run.
	equal(t, "hooks of a node", p.Spec.NodeHooks, []hook{{socket, asked, "Fail", []string{"PreVMStart"}},
		{socket, asked, "Ignore", []string{"PostVMStop"}}})
	lacks(t, rendered(t, "sidecar"), "kind: Plugin")
}

func TestCertificate(t *testing.T) {
	type certificate struct {
		Metadata struct{ Name, Namespace string }
		Spec     struct {
			SecretName string
			DNSNames   []string
			IssuerRef  struct{ Name, Kind string }
		}
	}
	r := rendered(t, "plugin")
	c := other[certificate](t, r, "Certificate")
	equal(t, "names", c.Spec.DNSNames, []string{"rel-webhook.ns.svc", "rel-webhook.ns.svc.cluster.local"})
	equal(t, "secret", c.Spec.SecretName, "rel-webhook")
	equal(t, "issuer", c.Spec.IssuerRef.Name, "ours")
	inject := c.Metadata.Namespace + "/" + c.Metadata.Name
	equal(t, "name", inject, "ns/rel-webhook")
	for what, notes := range map[string]map[string]string{
		"mutating":   get[*admission.MutatingWebhookConfiguration](t, r, "rel-webhook").Annotations,
		"validating": get[*admission.ValidatingWebhookConfiguration](t, r, "rel-webhook").Annotations,
	} {
		equal(t, "certificate of the webhooks, "+what, notes["cert-manager.io/inject-ca-from"], inject)
	}
	lacks(t, rendered(t, "sidecar"), "kind: Certificate")
}

// asks reports whether a condition has this name, and these words in its expression.
func asks(conditions []admission.MatchCondition, name, words string) bool {
	return slices.ContainsFunc(conditions, func(c admission.MatchCondition) bool {
		return c.Name == name && strings.Contains(c.Expression, words)
	})
}

// TestConditions checks that a webhook or policy that can fail matches only objects of the driver.
func TestConditions(t *testing.T) {
	r := rendered(t, "sidecar")
	const annotation = "'stargate.csi.dev/volumes' in object.metadata.annotations"
	named, fails := 0, 0
	webhook := func(name string, failure admission.FailurePolicyType, seconds int32, conditions []admission.MatchCondition) {
		if strings.HasPrefix(name, "migrations.") {
			// A migration does not name the volumes of its VM. So if the webhook fails,
			// the API server admits migrations.
			equal(t, name+": failure policy", failure, admission.Ignore)
			equal(t, name+": timeout", seconds, int32(2))
			return
		}
		equal(t, name+": failure policy", failure, admission.Fail)
		check(t, asks(conditions, "names-volumes", annotation), "%s has no condition: %v", name, conditions)
		named, fails = named+1, fails+1
	}
	for _, w := range get[*admission.MutatingWebhookConfiguration](t, r, "rel-webhook").Webhooks {
		webhook("mutating "+w.Name, *w.FailurePolicy, *w.TimeoutSeconds, w.MatchConditions)
	}
	for _, w := range get[*admission.ValidatingWebhookConfiguration](t, r, "rel-webhook").Webhooks {
		webhook(w.Name, *w.FailurePolicy, *w.TimeoutSeconds, w.MatchConditions)
	}
	accounts := map[string]int{}
	for _, p := range list[*admission.ValidatingAdmissionPolicy](r) {
		equal(t, p.Name+": failure policy", *p.Spec.FailurePolicy, admission.Fail)
		equal(t, p.Name+": conditions", len(p.Spec.MatchConditions), 1)
		fails++
		switch c := p.Spec.MatchConditions[0]; {
		case strings.HasPrefix(p.Name, "rel-webhook"):
			check(t, asks(p.Spec.MatchConditions, "names-volumes", annotation), "%s has the condition %q", p.Name, c.Expression)
			named++
		case p.Name == "rel-csi-bound":
			check(t, asks(p.Spec.MatchConditions, "which", "startsWith('pvc-stargate.csi.dev--')"),
				"%s has the condition %q", p.Name, c.Expression)
		default:
			account := "rel-csi"
			if strings.HasSuffix(p.Name, "sizes") {
				account = "rel-resizer"
			}
			equal(t, p.Name+": requests of the account", c.Expression, "request.userInfo.username == 'system:serviceaccount:ns:"+account+"'")
			accounts[account]++
		}
	}
	equal(t, "conditions on the annotation", named, 7)
	equal(t, "conditions on the account", accounts, map[string]int{"rel-csi": 7, "rel-resizer": 2})
	equal(t, "webhooks and policies that can fail", fails, 17)
}

// TestPoliciesAreInForce checks that there is a policy for each kind of object that the driver's or
// the resizer's role may write. A binding must deny what the policy refuses. TestNodeToken,
// TestResizerToken, TestOwners and TestBound test the policies.
func TestPoliciesAreInForce(t *testing.T) {
	r := rendered(t, "sidecar")
	var names []string
	for _, p := range list[*admission.ValidatingAdmissionPolicy](r) {
		names = append(names, p.Name)
		binding := get[*admission.ValidatingAdmissionPolicyBinding](t, r, p.Name)
		equal(t, p.Name+": policy of the binding", binding.Spec.PolicyName, p.Name)
		equal(t, p.Name+": actions of the binding", binding.Spec.ValidationActions, []admission.ValidationAction{admission.Deny})
		check(t, binding.Spec.MatchResources == nil, "the binding %s is not for all objects", p.Name)
	}
	contains(t, "policies", names, "rel-csi-volumes", "rel-csi-volume-changes", "rel-csi-claims", "rel-csi-capacities",
		"rel-csi-nodes", "rel-csi-contents", "rel-csi-snapshots", "rel-csi-sizes", "rel-csi-claim-sizes", "rel-csi-bound",
		"rel-webhook", "rel-webhook-bindings")
	sets := get[*admission.ValidatingAdmissionPolicyBinding](t, rendered(t, "datasets"), "rel-csi-datasets").Spec
	equal(t, "the binding of data sets", sets.ValidationActions, []admission.ValidationAction{admission.Deny})
	// In this rendering, the role allows no change of nodes, so there is no policy about nodes.
	for _, p := range list[*admission.ValidatingAdmissionPolicy](rendered(t, "bare")) {
		check(t, p.Name != "rel-csi-nodes", "there is a policy about nodes")
	}
}

// told describes the requests that the API server sends to a webhook or a policy.
func told(rules []admission.RuleWithOperations) string {
	var all []string
	for _, r := range rules {
		operations := make([]string, 0, len(r.Operations))
		for _, o := range r.Operations {
			operations = append(operations, string(o))
		}
		all = append(all, strings.Join(operations, " ")+" of "+strings.Join(r.APIGroups, " ")+"/"+strings.Join(r.APIVersions, " ")+
			" "+strings.Join(r.Resources, " "))
	}
	return strings.Join(all, "; ")
}

// TestRules checks that the webhooks and policies cover each request that can create or change such
// an object. Subresources count, too: pods/status accepts annotations, and a binding adds
// annotations.
func TestRules(t *testing.T) {
	r := rendered(t, "sidecar")
	got := map[string]string{}
	webhook := func(name, path string, c admission.WebhookClientConfig, selectors ...*metav1.LabelSelector) {
		equal(t, name+": path", *c.Service.Path, path)
		equal(t, name+": service", c.Service.Namespace+"/"+c.Service.Name, "ns/rel-webhook")
		for _, s := range selectors {
			check(t, s == nil, "%s does not cover all objects: %v", name, s)
		}
	}
	for _, w := range get[*admission.MutatingWebhookConfiguration](t, r, "rel-webhook").Webhooks {
		webhook("mutating "+w.Name, "/mutate", w.ClientConfig, w.NamespaceSelector)
		got["mutating "+w.Name] = told(w.Rules)
		// KubeVirt sets a label on each launcher. The validating webhook also covers pods
		// without the label.
		if strings.HasPrefix(w.Name, "launchers.") {
			equal(t, w.Name+": pods", w.ObjectSelector, &metav1.LabelSelector{MatchLabels: map[string]string{"kubevirt.io": "virt-launcher"}})
		}
		equal(t, w.Name+": after other webhooks", *w.ReinvocationPolicy, admission.IfNeededReinvocationPolicy)
	}
	for _, w := range get[*admission.ValidatingWebhookConfiguration](t, r, "rel-webhook").Webhooks {
		webhook(w.Name, "/validate", w.ClientConfig, w.NamespaceSelector, w.ObjectSelector)
		got[w.Name] = told(w.Rules)
	}
	policies := list[*admission.ValidatingAdmissionPolicy](r)
	for _, p := range append(policies, get[*admission.ValidatingAdmissionPolicy](t, rendered(t, "dax"), "rel-csi-nodes")) {
		m := p.Spec.MatchConstraints
		check(t, m.NamespaceSelector == nil && m.ObjectSelector == nil && len(m.ExcludeResourceRules) == 0, "%s is not for all objects", p.Name)
		rules := make([]admission.RuleWithOperations, 0, len(m.ResourceRules))
		for _, rule := range m.ResourceRules {
			check(t, len(rule.ResourceNames) == 0, "%s covers only some names: %v", p.Name, rule.ResourceNames)
			rules = append(rules, rule.RuleWithOperations)
		}
		got[p.Name] = told(rules)
	}
	equal(t, "requests", got, map[string]string{
		"mutating machines.stargate.csi.dev":  "CREATE of kubevirt.io/v1 virtualmachineinstances",
		"mutating launchers.stargate.csi.dev": "CREATE of /v1 pods",
		"machines.stargate.csi.dev":           "CREATE UPDATE of kubevirt.io/v1 virtualmachineinstances",
		"launchers.stargate.csi.dev":          "CREATE UPDATE of /v1 pods pods/status",
		"templates.stargate.csi.dev":          "CREATE UPDATE of kubevirt.io/v1 virtualmachines",
		"migrations.stargate.csi.dev":         "CREATE of kubevirt.io/v1 virtualmachineinstancemigrations",
		"rel-webhook":                         "CREATE of kubevirt.io/v1 virtualmachineinstances",
		"rel-webhook-bindings":                "CREATE of /v1 pods/binding bindings",
		"rel-csi-volumes":                     "CREATE DELETE of /v1 persistentvolumes",
		"rel-csi-volume-changes":              "UPDATE of /v1 persistentvolumes",
		"rel-csi-bound":                       "UPDATE of /v1 persistentvolumeclaims",
		"rel-csi-claims":                      "UPDATE of /v1 persistentvolumeclaims",
		"rel-csi-sizes":                       "UPDATE of /v1 persistentvolumes",
		"rel-csi-claim-sizes":                 "UPDATE of /v1 persistentvolumeclaims/status",
		"rel-csi-capacities":                  "CREATE UPDATE DELETE of storage.k8s.io/v1 csistoragecapacities",
		"rel-csi-nodes":                       "UPDATE of /v1 nodes",
		"rel-csi-snapshots":                   "UPDATE of snapshot.storage.k8s.io/v1 volumesnapshots",
		"rel-csi-contents":                    "UPDATE of snapshot.storage.k8s.io/v1 volumesnapshotcontents volumesnapshotcontents/status",
	})
}
