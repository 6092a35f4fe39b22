// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Rules of the driver's service account, whose tokens are on each node. They do not include the
// resizer's rules.
const (
	ofVolumes = `
- {apiGroups: [""], resources: [persistentvolumes], verbs: [get, list, watch, create, patch, delete]}
- {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [get, list, watch, update]}
`
	ofNodes = `
- {apiGroups: [""], resources: [nodes], verbs: [get, list, watch, patch]}
`
	ofNodesBare = `
- {apiGroups: [""], resources: [nodes], verbs: [get, list, watch]}
`
	// The driver reads a pod to decide whether it belongs to a VM.
	ofPods = `
- {apiGroups: [""], resources: [pods], verbs: [get]}
`
	ofRest = `
- {apiGroups: [""], resources: [events], verbs: [get, list, watch, create, update, patch]}
- {apiGroups: [storage.k8s.io], resources: [storageclasses, csinodes, volumeattributesclasses], verbs: [get, list, watch]}
`
	// The provisioner protects a snapshot while it creates a volume from the snapshot.
	ofSnapshots = `
- {apiGroups: [snapshot.storage.k8s.io], resources: [volumesnapshotclasses], verbs: [get, list, watch]}
- {apiGroups: [snapshot.storage.k8s.io], resources: [volumesnapshots], verbs: [get, list, watch, update]}
- {apiGroups: [snapshot.storage.k8s.io], resources: [volumesnapshotcontents], verbs: [get, list, watch, update, patch]}
- {apiGroups: [snapshot.storage.k8s.io], resources: [volumesnapshotcontents/status], verbs: [update, patch]}
`
	// The driver writes only its node's entry of the status (node-policy.yaml).
	ofDatasets = `
- {apiGroups: [stargate.csi.dev], resources: [stargatedatasets], verbs: [get, list]}
- {apiGroups: [stargate.csi.dev], resources: [stargatedatasets/status], verbs: [patch]}
`
	ofResizer = `
- {apiGroups: [""], resources: [persistentvolumes], verbs: [get, list, watch, patch]}
- {apiGroups: [""], resources: [persistentvolumeclaims, pods], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [persistentvolumeclaims/status], verbs: [patch]}
- {apiGroups: [""], resources: [events], verbs: [get, list, watch, create, update, patch]}
- {apiGroups: [storage.k8s.io], resources: [storageclasses, volumeattributesclasses], verbs: [get, list, watch]}
`
	ofWebhook = `
- {apiGroups: [""], resources: [persistentvolumeclaims, persistentvolumes, nodes], verbs: [get]}
- {apiGroups: [""], resources: [pods], verbs: [list]}
- {apiGroups: [storage.k8s.io], resources: [storageclasses, csinodes], verbs: [get]}
- {apiGroups: [storage.k8s.io], resources: [csidrivers], verbs: [list]}
- {apiGroups: [kubevirt.io], resources: [kubevirts], verbs: [list]}
- {apiGroups: [kubevirt.io], resources: [virtualmachineinstances], verbs: [get, list]}
`
)

// TestClusterRoles checks that each role has exactly these rules.
func TestClusterRoles(t *testing.T) {
	for _, c := range []struct{ name, role, what, rules string }{
		{"dax", "rel-csi", "the driver", ofVolumes + ofNodes + ofRest},
		{"file", "rel-csi", "the driver of a zone of files", ofVolumes + ofNodes + ofRest},
		{"none", "rel-csi", "the driver without a zone", ofVolumes + ofNodes + ofRest},
		{"bare", "rel-csi", "a driver without access to nodes", ofVolumes + ofNodesBare + ofRest},
		{"snapshots", "rel-csi", "the driver with snapshots", ofVolumes + ofNodes + ofRest + ofSnapshots},
		{"datasets", "rel-csi", "the driver with data sets", ofVolumes + ofNodes + ofRest + ofDatasets},
		{"plugin", "rel-csi", "the driver with machines", ofVolumes + ofNodes + ofPods + ofRest},
		{"dax", "rel-resizer", "the resizer", ofResizer},
		{"file", "rel-resizer", "the resizer for a zone of files", ofResizer},
		{"none", "rel-resizer", "the resizer without a zone", ofResizer},
		{"sidecar", "rel-webhook", "the webhook", ofWebhook},
		{"plugin", "rel-webhook", "the webhook with cert-manager", ofWebhook},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := rendered(t, c.name)
			equal(t, "rules", get[*rbacv1.ClusterRole](t, r, c.role).Rules, rules(t, c.rules))
			bound(t, get[*rbacv1.ClusterRoleBinding](t, r, c.role).RoleRef, "ClusterRole", c.role,
				get[*rbacv1.ClusterRoleBinding](t, r, c.role).Subjects)
		})
	}
}

// TestRoles checks the roles in the release's namespace. The resizer may use leases, but the driver
// may not.
func TestRoles(t *testing.T) {
	const own = `
- {apiGroups: [storage.k8s.io], resources: [csistoragecapacities], verbs: [get, list, watch, create, update, patch, delete]}
- {apiGroups: [""], resources: [pods], verbs: [get]}
- {apiGroups: [apps], resources: [daemonsets], verbs: [get]}
`
	const lease = `
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, watch, list, create, update, patch, delete]}
`
	for _, c := range []struct{ name, role, what, rules string }{
		{"dax", "rel-csi", "the driver", own},
		{"file", "rel-csi", "the driver of a zone of files", own},
		{"none", "rel-csi", "the driver without a zone", own},
		{"dax", "rel-resizer", "the resizer", lease},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := rendered(t, c.name)
			role := get[*rbacv1.Role](t, r, c.role)
			equal(t, "rules", role.Rules, rules(t, c.rules))
			equal(t, "namespace", role.Namespace, "ns")
			binding := get[*rbacv1.RoleBinding](t, r, c.role)
			bound(t, binding.RoleRef, "Role", c.role, binding.Subjects)
		})
	}
	// The webhook reads its certificate from a mount.
	for _, name := range []string{"sidecar", "plugin"} {
		r := rendered(t, name)
		for _, role := range list[*rbacv1.Role](r) {
			check(t, role.Name != "rel-webhook", "%s: the webhook has a role, which it does not need: %v", name, role.Rules)
		}
		lacks(t, r, "resources: [secrets]")
	}
}

// bound checks that a binding grants a role only to the service account of the same name.
func bound(t *testing.T, ref rbacv1.RoleRef, kind, name string, subjects []rbacv1.Subject) {
	t.Helper()
	equal(t, "the role", ref, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name})
	equal(t, "its account", subjects, []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: "ns"}})
}

// allRoles returns the rules of each role of a rendering.
func allRoles(r *rendering) map[string][]rbacv1.PolicyRule {
	roles := map[string][]rbacv1.PolicyRule{}
	for _, role := range list[*rbacv1.ClusterRole](r) {
		roles["ClusterRole "+role.Name] = role.Rules
	}
	for _, role := range list[*rbacv1.Role](r) {
		roles["Role "+role.Name] = role.Rules
	}
	return roles
}

// TestNoWildcards checks that no role has a wildcard.
func TestNoWildcards(t *testing.T) {
	for name := range renderings {
		for role, rules := range allRoles(rendered(t, name)) {
			for _, rule := range rules {
				check(t, !slices.Contains(slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs), "*"),
					"%s: %s allows %v", name, role, rule)
			}
		}
	}
}

// TestNoAdmission checks that no role may write webhooks or policies. With its own webhook, an
// account would get every object of the cluster and could change it, without a check by any policy.
func TestNoAdmission(t *testing.T) {
	found := 0
	for name := range renderings {
		for role, rules := range allRoles(rendered(t, name)) {
			for _, rule := range rules {
				if !slices.Contains(rule.APIGroups, "admissionregistration.k8s.io") {
					continue
				}
				found++
				equal(t, name+": verbs of "+role, rule.Verbs, []string{"get"})
			}
		}
	}
	check(t, found > 0, "no role may read webhooks, but the Job of an upgrade needs this")
}

// TestAccounts checks that no two pods share a service account, and that no pod has a token of the
// namespace's default account.
func TestAccounts(t *testing.T) {
	for name := range renderings {
		r := rendered(t, name)
		of := map[string]string{}
		for _, p := range pods(r) {
			account := p.spec.ServiceAccountName
			if account == "" {
				check(t, p.spec.AutomountServiceAccountToken != nil && !*p.spec.AutomountServiceAccountToken,
					"%s: %s has a token of the default account", name, p.owner)
				continue
			}
			check(t, of[account] == "", "%s: %s and %s share the account %s", name, p.owner, of[account], account)
			of[account] = p.owner
		}
	}
}
