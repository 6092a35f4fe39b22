// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
)

// Objects of node n1, and invalid variants of them.
const (
	volumeN1 = `{metadata: {name: pvc-stargate.csi.dev--n1-0b5e55ed-0000-4000-8000-00000000beef, labels: {}, annotations: {pv.kubernetes.io/provisioned-by: stargate.csi.dev}, finalizers: [kubernetes.io/pv-protection]},
		spec: {csi: {driver: stargate.csi.dev, volumeHandle: pvc-1}, capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], storageClassName: stargate,
		claimRef: {namespace: a, name: data, uid: 0b5e55ed-0000-4000-8000-00000000beef}, persistentVolumeReclaimPolicy: Delete, volumeMode: Filesystem,
		nodeAffinity: {required: {nodeSelectorTerms: [
		{matchExpressions: [{key: topology.stargate.csi.dev/node, operator: In, values: [n1]}]}]}}}}`
	claimN1 = `{metadata: {name: data, annotations: {volume.kubernetes.io/storage-provisioner: stargate.csi.dev, volume.kubernetes.io/selected-node: n1}, finalizers: [kubernetes.io/pvc-protection]},
		spec: {storageClassName: stargate, resources: {requests: {storage: 1Gi}}}}`
	nodeN1 = `{metadata: {name: n1, labels: {kubernetes.io/hostname: n1, stargate.csi.dev/zone-mib: "5"}, annotations: {a: b}},
		spec: {taints: [{key: other, effect: NoSchedule}, {key: stargate.csi.dev/not-ready, effect: NoSchedule}]}}`
	contentN1 = `{metadata: {name: c, labels: {snapshot.storage.kubernetes.io/managed-by: n1}}, spec: {driver: stargate.csi.dev}}`
	snapshotA = `{metadata: {name: s, annotations: {a: b}, finalizers: [snapshot.storage.kubernetes.io/volumesnapshot-bound-protection]},
		spec: {volumeSnapshotClassName: held, source: {persistentVolumeClaimName: data}}, status: {readyToUse: true}}`
	setN1  = `{metadata: {name: llama, namespace: a}, spec: {size: 1Gi}, status: {nodes: {n1: {phase: Filling, percent: 7}, n2: {phase: Ready}}}}`
	roomN1 = `{metadata: {name: r}, nodeTopology: {matchLabels: {topology.stargate.csi.dev/node: n1}}, storageClassName: stargate, capacity: 1Gi}`
)

// change returns an object in which the given words are replaced.
func change(object string, words ...string) string {
	changed := strings.NewReplacer(words...).Replace(object)
	if changed == object {
		panic("nothing is changed in " + object)
	}
	return changed
}

// TestNodeToken checks how the policies limit the token of the driver's pod on a node. RBAC allows
// each of these changes.
func TestNodeToken(t *testing.T) {
	const driver = "system:serviceaccount:ns:rel-csi"
	grown := change(volumeN1, "1Gi", "2Gi", "annotations: {", "annotations: {volume.alpha.kubernetes.io/pre-resize-capacity: 1Gi, ")
	secret := change(volumeN1, "volumeHandle: pvc-1", "volumeHandle: pvc-1, nodeStageSecretRef: {namespace: a, name: s}")
	older := change(volumeN1, "name: pvc-stargate.csi.dev--n1-", "name: pvc-stargate.csi.dev-")
	restored := change(snapshotA, "bound-protection]", "bound-protection, provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection]")
	for _, c := range []struct{ policy, what, node, was, is, words string }{
		{"volumes", "made", "n1", "", volumeN1, ""},
		{"volumes", "made for another node", "n2", "", volumeN1, "of its own node only"},
		{"volumes", "made by a token of no node", "", "", volumeN1, "names no node"},
		{"volumes", "made for any node", "n1", "", change(volumeN1, "nodeAffinity: {required", "other: {required"), "of its own node only"},
		{"volumes", "made for two nodes", "n1", "", change(volumeN1, "[n1]", "[n1, n2]"), "of its own node only"},
		{"volumes", "made for another node by a second term", "n1", "", change(volumeN1, "values: [n1]}]}]", "values: [n1]}]}, {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n2]}]}]"), "of its own node only"},
		{"volumes", "made for all nodes except one", "n1", "", change(volumeN1, "operator: In", "operator: NotIn"), "of its own node only"},
		{"volumes", "made of the node's own files", "n1", "", change(volumeN1, "csi: {driver: stargate.csi.dev, volumeHandle: pvc-1}", "hostPath: {path: /}"), "of the driver only"},
		{"volumes", "made of another driver", "n1", "", change(volumeN1, "driver: stargate", "driver: other"), "of the driver only"},
		{"volumes", "made for a claim without a UID", "n1", "", change(volumeN1, ", uid: 0b5e55ed-0000-4000-8000-00000000beef", ""), "for a claim that exists"},
		{"volumes", "made for no claim", "n1", "", change(volumeN1, "claimRef: {namespace: a, name: data, uid: 0b5e55ed-0000-4000-8000-00000000beef}, ", ""), "for a claim that exists"},
		{"volumes", "made for a claim that does not match its name", "n1", "", change(volumeN1, "uid: 0b", "uid: 1b"), "for a claim that exists"},
		{"volumes", "made for no UID", "n1", "", change(volumeN1, "0b5e55ed-0000-4000-8000-00000000beef", "u"), "for a claim that exists"},
		{"volumes", "called as another driver's", "n1", "", change(volumeN1, "name: pvc-stargate.csi.dev--n1-", "name: pvc-"), "for a claim that exists"},
		{"volumes", "called as another node's", "n1", "", change(volumeN1, "name: pvc-stargate.csi.dev--n1-", "name: pvc-stargate.csi.dev--n2-"), "for a claim that exists"},
		{"volumes", "called as no node's", "n1", "", change(volumeN1, "name: pvc-stargate.csi.dev--n1-", "name: pvc-stargate.csi.dev-"), "for a claim that exists"},
		{"volumes", "made with the Secret nodePublish", "n1", "", change(volumeN1, "volumeHandle: pvc-1", "volumeHandle: pvc-1, nodePublishSecretRef: {namespace: kube-system, name: s}"), "volume that names a Secret"},
		{"volumes", "made with the Secret nodeStage", "n1", "", change(volumeN1, "volumeHandle: pvc-1", "volumeHandle: pvc-1, nodeStageSecretRef: {namespace: kube-system, name: s}"), "volume that names a Secret"},
		{"volumes", "made with the Secret nodeExpand", "n1", "", change(volumeN1, "volumeHandle: pvc-1", "volumeHandle: pvc-1, nodeExpandSecretRef: {namespace: kube-system, name: s}"), "volume that names a Secret"},
		{"volumes", "made with the Secret controllerPublish", "n1", "", change(volumeN1, "volumeHandle: pvc-1", "volumeHandle: pvc-1, controllerPublishSecretRef: {namespace: kube-system, name: s}"), "volume that names a Secret"},
		{"volumes", "made with the Secret controllerExpand", "n1", "", change(volumeN1, "volumeHandle: pvc-1", "volumeHandle: pvc-1, controllerExpandSecretRef: {namespace: kube-system, name: s}"), "volume that names a Secret"},
		{"volumes", "made as the provisioner does", "n1", "", change(volumeN1, "annotations: {", `annotations: {volume.kubernetes.io/provisioner-deletion-secret-name: "", volume.kubernetes.io/provisioner-deletion-secret-namespace: "", `), ""},
		{"volumes", "made without annotations", "n1", "", change(volumeN1, "annotations: {pv.kubernetes.io/provisioned-by: stargate.csi.dev}, ", ""), ""},
		{"volumes", "made so that another driver deletes it", "n1", "", change(volumeN1, "provisioned-by: stargate.csi.dev", "provisioned-by: ceph.example"), "that another driver deletes"},
		{"volumes", "made as if migrated to another driver", "n1", "", change(volumeN1, "annotations: {", "annotations: {pv.kubernetes.io/migrated-to: ceph.example, "), "that another driver deletes"},
		{"volumes", "made with the name of a Secret for its deletion", "n1", "", change(volumeN1, "annotations: {", "annotations: {volume.kubernetes.io/provisioner-deletion-secret-name: s, "), "that another driver deletes"},
		{"volumes", "made with the namespace of a Secret for its deletion", "n1", "", change(volumeN1, "annotations: {", "annotations: {volume.kubernetes.io/provisioner-deletion-secret-namespace: a, "), "that another driver deletes"},
		{"volumes", "made with an unknown annotation", "n1", "", change(volumeN1, "annotations: {", "annotations: {x: y, "), "that another driver deletes"},
		{"volumes", "deleted", "n1", volumeN1, "", ""},
		{"volumes", "of an older release deleted", "n1", change(volumeN1, "name: pvc-stargate.csi.dev--n1-", "name: pvc-"), "", ""},
		{"volumes", "of the previous release, deleted", "n1", older, "", ""},
		{"volumes", "deleted by another node", "n2", volumeN1, "", "of its own node only"},
		{"volumes", "of another driver deleted", "n1", change(volumeN1, "driver: stargate", "driver: other"), "", "of the driver only"},
		{"volume-changes", "released", "n1", volumeN1, change(volumeN1, "[kubernetes.io/pv-protection]", "[]"), ""},
		{"volume-changes", "of the previous release, released", "n1", older, change(older, "[kubernetes.io/pv-protection]", "[]"), ""},
		{"volume-changes", "grown by another node", "n2", volumeN1, grown, "of its own node only"},
		{"volume-changes", "released by another node", "n2", volumeN1, change(volumeN1, "[kubernetes.io/pv-protection]", "[]"), "of its own node only"},
		{"volume-changes", "taken by another node", "n2", volumeN1, change(volumeN1, "[n1]", "[n2]"), "of its own node only"},
		{"volume-changes", "given to another node", "n1", volumeN1, change(volumeN1, "[n1]", "[n2]"), "of its own node only"},
		{"volume-changes", "pointed at another claim", "n1", volumeN1, change(volumeN1, "name: data", "name: mine"), "at another claim"},
		{"volume-changes", "given to another claim", "n2", volumeN1, change(volumeN1, "name: data", "name: mine"), "of its own node only"},
		{"volume-changes", "given a Secret", "n1", volumeN1, change(volumeN1, "volumeHandle: pvc-1", "volumeHandle: pvc-1, controllerExpandSecretRef: {namespace: kube-system, name: s}"), "a Secret or another handle"},
		{"volume-changes", "released, and has had a Secret", "n1", secret, change(secret, "[kubernetes.io/pv-protection]", "[]"), ""},
		{"volume-changes", "changed so that another driver deletes it", "n1", volumeN1, change(volumeN1, "provisioned-by: stargate.csi.dev", "provisioned-by: ceph.example"), "may not change annotations"},
		{"volume-changes", "as if migrated to another driver", "n1", volumeN1, change(volumeN1, "annotations: {", "annotations: {pv.kubernetes.io/migrated-to: ceph.example, "), "may not change annotations"},
		{"volume-changes", "with a Secret for its deletion", "n1", volumeN1, change(volumeN1, "annotations: {", "annotations: {volume.kubernetes.io/provisioner-deletion-secret-name: s, "), "may not change annotations"},
		{"volume-changes", "without its provisioner", "n1", volumeN1, change(volumeN1, "pv.kubernetes.io/provisioned-by: stargate.csi.dev", ""), "may not change annotations"},
		{"volume-changes", "bound by Kubernetes, and released", "n1", change(volumeN1, "annotations: {", "annotations: {pv.kubernetes.io/bound-by-controller: 'yes', "), change(volumeN1, "annotations: {", "annotations: {pv.kubernetes.io/bound-by-controller: 'yes', ", "[kubernetes.io/pv-protection]", "[]"), ""},
		{"volume-changes", "kept permanently", "n2", volumeN1, change(volumeN1, "Policy: Delete", "Policy: Retain"), "of its own node only"},
		{"volume-changes", "annotated", "n2", volumeN1, change(volumeN1, "annotations: {", "annotations: {x: y, "), "of its own node only"},
		{"volume-changes", "labelled", "n2", volumeN1, change(volumeN1, "labels: {", "labels: {x: y"), "of its own node only"},
		{"volume-changes", "no longer annotated", "n2", volumeN1, change(volumeN1, "pv.kubernetes.io/provisioned-by: stargate.csi.dev", ""), "of its own node only"},
		{"volume-changes", "of another driver", "n1", change(volumeN1, "driver: stargate", "driver: other"), change(volumeN1, "driver: stargate", "driver: other", "1Gi", "2Gi"), "of the driver only"},
		{"claims", "released for a node with room", "n1", claimN1, change(claimN1, ", volume.kubernetes.io/selected-node: n1", ""), ""},
		{"claims", "taken by a node", "n1", change(claimN1, ", volume.kubernetes.io/selected-node: n1", ""), claimN1, ""},
		{"claims", "taken for another node", "n1", claimN1, change(claimN1, "selected-node: n1", "selected-node: n2"), "for its own node"},
		{"claims", "taken from another node", "n2", claimN1, change(claimN1, ", volume.kubernetes.io/selected-node: n1", ""), "for its own node"},
		{"claims", "another driver's taken", "n1", change(claimN1, ", volume.kubernetes.io/selected-node: n1", "", "stargate.csi.dev", "ceph.example"), change(claimN1, "stargate.csi.dev", "ceph.example"), "that the driver serves"},
		{"claims", "taken although it names no provisioner", "n1", change(claimN1, "{volume.kubernetes.io/storage-provisioner: stargate.csi.dev, volume.kubernetes.io/selected-node: n1}", "{}"), change(claimN1, "volume.kubernetes.io/storage-provisioner: stargate.csi.dev, ", ""), "that the driver serves"},
		{"claims", "another driver's claim released", "n1", change(claimN1, "stargate.csi.dev", "ceph.example"), change(claimN1, "stargate.csi.dev", "ceph.example", ", volume.kubernetes.io/selected-node: n1", ""), "that the driver serves"},
		{"claims", "protected while it is cloned", "n2", claimN1, change(claimN1, "pvc-protection]", "pvc-protection, provisioner.storage.kubernetes.io/cloning-protection]"), ""},
		{"claims", "without protection", "n1", claimN1, change(claimN1, "[kubernetes.io/pvc-protection]", "[]"), "nothing else"},
		{"claims", "bound", "n1", claimN1, change(claimN1, "spec: {", "spec: {volumeName: pvc-2, "), "nothing else"},
		{"claims", "labelled", "n1", claimN1, change(claimN1, "metadata: {", "metadata: {labels: {a: b}, "), "nothing else"},
		{"claims", "annotated", "n1", claimN1, change(claimN1, "annotations: {", "annotations: {x: y, "), "nothing else"},
		{"nodes", "ready", "n1", nodeN1, change(nodeN1, ", {key: stargate.csi.dev/not-ready, effect: NoSchedule}", "", `"5"`, `"7"`, "a: b", "a: b, stargate.csi.dev/module: x"), ""},
		{"nodes", "without a zone", "n1", nodeN1, change(nodeN1, `, stargate.csi.dev/zone-mib: "5"`, ""), ""},
		{"nodes", "another one", "n2", nodeN1, change(nodeN1, `"5"`, `"7"`), "its own Node only"},
		{"nodes", "labelled", "n1", nodeN1, change(nodeN1, "labels: {", "labels: {node-role.kubernetes.io/control-plane: '', "), "the driver's label"},
		{"nodes", "under another name", "n1", nodeN1, change(nodeN1, "hostname: n1", "hostname: n2"), "the driver's label"},
		{"nodes", "annotated", "n1", nodeN1, change(nodeN1, "a: b", "a: c"), "the driver's label"},
		{"nodes", "another's taint gone", "n1", nodeN1, change(nodeN1, "{key: other, effect: NoSchedule}, ", ""), "the driver's taint"},
		{"nodes", "tainted", "n1", nodeN1, change(nodeN1, "taints: [", "taints: [{key: mine, effect: NoExecute}, "), "the driver's taint"},
		{"nodes", "given addresses of pods", "n1", nodeN1, change(nodeN1, "spec: {", "spec: {podCIDR: 192.0.2.0/24, podCIDRs: [192.0.2.0/24], "), "the driver's taint"},
		{"nodes", "given a second range of addresses", "n1", change(nodeN1, "spec: {", "spec: {podCIDRs: [192.0.2.0/24], "), change(nodeN1, "spec: {", "spec: {podCIDRs: [192.0.2.0/24, '2001:db8::/64'], "), "the driver's taint"},
		{"nodes", "made another machine", "n1", nodeN1, change(nodeN1, "spec: {", "spec: {providerID: 'cloud://another', "), "the driver's taint"},
		{"nodes", "ready, with addresses of pods", "n1", change(nodeN1, "spec: {", "spec: {podCIDR: 192.0.2.0/24, podCIDRs: [192.0.2.0/24], providerID: 'cloud://this', "), change(change(nodeN1, "spec: {", "spec: {podCIDR: 192.0.2.0/24, podCIDRs: [192.0.2.0/24], providerID: 'cloud://this', "), ", {key: stargate.csi.dev/not-ready, effect: NoSchedule}", ""), ""},
		{"nodes", "closed", "n1", nodeN1, change(nodeN1, "spec: {", "spec: {unschedulable: true, "), "the driver's taint"},
		{"contents", "ready", "n1", contentN1, change(contentN1, "spec: {", "status: {readyToUse: true}, spec: {"), ""},
		{"contents", "written by a user, claimed by the node with the snapshot", "n1", change(contentN1, "snapshot.storage.kubernetes.io/managed-by: n1", ""), contentN1, ""},
		{"contents", "taken by another node", "n2", contentN1, change(contentN1, "managed-by: n1", "managed-by: n2"), "of its own node only"},
		{"contents", "given to another node", "n1", contentN1, change(contentN1, "managed-by: n1", "managed-by: n2"), "of its own node only"},
		{"contents", "changed by another node", "n2", contentN1, change(contentN1, "name: c", "name: c, annotations: {a: b}"), "of its own node only"},
		{"contents", "of another driver", "n1", contentN1, change(contentN1, "driver: stargate", "driver: other"), "of the driver only"},
		{"snapshots", "protected while it is restored", "n2", snapshotA, restored, ""},
		{"snapshots", "restored", "n1", restored, snapshotA, ""},
		{"snapshots", "without protection", "n1", snapshotA, change(snapshotA, "[snapshot.storage.kubernetes.io/volumesnapshot-bound-protection]", "[]"), "nothing else"},
		{"snapshots", "held for ever", "n1", snapshotA, change(snapshotA, "bound-protection]", "bound-protection, mine.example/x]"), "nothing else"},
		{"snapshots", "of another claim", "n1", snapshotA, change(snapshotA, "Name: data", "Name: other"), "nothing else"},
		{"snapshots", "annotated", "n1", snapshotA, change(snapshotA, "a: b", "a: c"), "nothing else"},
		{"snapshots", "labelled", "n1", snapshotA, change(snapshotA, "metadata: {", "metadata: {labels: {a: b}, "), "nothing else"},
		{"datasets", "filled further", "n1", setN1, change(setN1, "percent: 7", "percent: 8"), ""},
		{"datasets", "no longer on the node", "n1", setN1, change(setN1, "n1: {phase: Filling, percent: 7}, ", ""), ""},
		{"datasets", "on its first node", "n1", change(setN1, "status: {nodes: {n1: {phase: Filling, percent: 7}, n2: {phase: Ready}}}", ""), change(setN1, ", n2: {phase: Ready}", ""), ""},
		{"datasets", "told for another node", "n1", setN1, change(setN1, "n2: {phase: Ready}", "n2: {phase: Failed}"), "of its own node"},
		{"datasets", "told for a new node", "n1", setN1, change(setN1, "n2: {phase: Ready}", "n2: {phase: Ready}, n3: {phase: Ready}"), "of its own node"},
		{"datasets", "taken from another node", "n1", setN1, change(setN1, ", n2: {phase: Ready}", ""), "of its own node"},
		{"datasets", "told by a token of no node", "", setN1, change(setN1, "percent: 7", "percent: 8"), "names no node"},
		{"capacities", "told", "n1", "", roomN1, ""},
		{"capacities", "told again", "n1", roomN1, change(roomN1, "1Gi", "2Gi"), ""},
		{"capacities", "taken back", "n1", roomN1, "", ""},
		{"capacities", "told for another node", "n2", "", roomN1, "storage capacity of its own node only"},
		{"capacities", "taken from another node", "n2", roomN1, change(roomN1, "node: n1", "node: n2"), "storage capacity of its own node only"},
		{"capacities", "another's taken back", "n2", roomN1, "", "storage capacity of its own node only"},
		{"capacities", "told for all", "n1", "", change(roomN1, "{topology.stargate.csi.dev/node: n1}", "{}"), "storage capacity of its own node only"},
	} {
		operation := "UPDATE"
		switch {
		case c.was == "":
			operation = "CREATE"
		case c.is == "":
			operation = "DELETE"
		}
		user := func(name string) map[string]any {
			extra := map[string]any{"authentication.kubernetes.io/pod-name": []any{"p"}}
			if c.node != "" {
				extra["authentication.kubernetes.io/node-name"] = []any{c.node}
			}
			return map[string]any{"operation": operation, "userInfo": map[string]any{"username": name, "extra": extra}}
		}
		in := map[string]any{"object": read(t, c.is), "oldObject": read(t, c.was), "request": user(driver)}
		said := refusalsOf(t, "rel-csi-"+c.policy, in)
		fits(t, said, c.words, "%s, %s, by %s", c.policy, c.what, c.node)
		in["request"] = user("system:serviceaccount:kube-system:somebody")
		fits(t, refusalsOf(t, "rel-csi-"+c.policy, in), "", "%s, %s, of somebody else", c.policy, c.what)
	}
}

// TestBound checks that, for any user, a volume that a node has created can be bound only to a
// claim of its driver for this node. Kubernetes' binder uses the claim that the volume names,
// before it checks classes and nodes.
func TestBound(t *testing.T) {
	const (
		ours   = `volume.kubernetes.io/storage-provisioner: stargate.csi.dev`
		before = `volume.beta.kubernetes.io/storage-provisioner: stargate.csi.dev`
		theirs = `volume.kubernetes.io/storage-provisioner: ceph.example`
		here   = `, volume.kubernetes.io/selected-node: n1`
		there  = `, volume.kubernetes.io/selected-node: n2`
		uid    = "0b5e55ed-0000-4000-8000-00000000beef"
		made   = "pvc-stargate.csi.dev--n1-" + uid
		kept   = "pvc-stargate.csi.dev--n1-0b5e55ed-0000-4000-8000-00000000cafe"
	)
	claim := func(annotations, volume string) string {
		if annotations != "" {
			annotations = ", annotations: {" + annotations + "}"
		}
		if volume != "" {
			volume = ", volumeName: " + volume
		}
		return `{metadata: {name: data, uid: ` + uid + annotations + `}, spec: {storageClassName: some` + volume + `}}`
	}
	for _, c := range []struct{ what, was, is, words string }{
		{"ours", claim(ours+here, ""), claim(ours+here, made), ""},
		{"ours, in the form of older releases of Kubernetes", claim(before+here, ""), claim(before+here, made), ""},
		{"ours, on a node with a domain", claim(ours+here+".example.org", ""), claim(ours+here+".example.org", "pvc-stargate.csi.dev--n1.example.org-"+uid), ""},
		{"ours, for another node", claim(ours+there, ""), claim(ours+there, made), "for another node"},
		{"ours, for no node yet", claim(ours, ""), claim(ours, made), "for another node"},
		{"ours, for a node whose name begins with the volume's node", claim(ours+here+"-2", ""), claim(ours+here+"-2", made), "for another node"},
		{"ours, for a node whose name ends with the volume's node", claim(ours+", volume.kubernetes.io/selected-node: x-n1", ""), claim(ours+", volume.kubernetes.io/selected-node: x-n1", made), "for another node"},
		{"another driver's", claim(theirs+here, ""), claim(theirs+here, made), "belongs to another driver"},
		{"a claim without a provisioner", claim("a: b"+here, ""), claim("a: b"+here, made), "belongs to another driver"},
		{"one without annotations", claim("", ""), claim("", made), "belongs to another driver"},
		{"another volume", claim(theirs, ""), claim(theirs, "pvc-u"), ""},
		{"a volume of an older chart", claim(ours+here, ""), claim(ours+here, "pvc-stargate.csi.dev-"+uid), ""},
		{"a kept volume that was made for another claim", claim("", ""), claim("", kept), ""},
		{"a volume of a driver whose name begins with our driver's", claim(theirs, ""), claim(theirs, "pvc-stargate.csi.dev-two.x--n1-"+uid), ""},
		{"none", claim(theirs, ""), claim(theirs+", a: b", ""), ""},
		{"bound long ago", claim(theirs, made), claim(theirs+", a: b", made), ""},
		{"bound to another volume now", claim(theirs+here, "pvc-u"), claim(theirs+here, made), "belongs to another driver"},
	} {
		said := refusalsOf(t, "rel-csi-bound", map[string]any{"object": read(t, c.is), "oldObject": read(t, c.was), "request": map[string]any{
			"operation": "UPDATE", "userInfo": map[string]any{"username": "system:serviceaccount:kube-system:persistent-volume-binder"}}})
		fits(t, said, c.words, "%s", c.what)
	}
}

// TestResizerToken checks that the resizer's token may only change the size of volumes, on any
// node.
func TestResizerToken(t *testing.T) {
	grown := change(volumeN1, "1Gi", "2Gi", "annotations: {", "annotations: {volume.alpha.kubernetes.io/pre-resize-capacity: 1Gi, ")
	for _, c := range []struct{ what, was, is, words string }{
		{"grown", volumeN1, grown, ""},
		{"grown at last", grown, change(volumeN1, "1Gi", "2Gi"), ""},
		{"released", volumeN1, change(volumeN1, "[kubernetes.io/pv-protection]", "[]"), "change the size of a volume"},
		{"given to another node", volumeN1, change(volumeN1, "[n1]", "[n2]"), "change the size of a volume"},
		{"given to another claim", volumeN1, change(volumeN1, "name: data", "name: mine"), "change the size of a volume"},
		{"kept permanently", volumeN1, change(volumeN1, "Policy: Delete", "Policy: Retain"), "change the size of a volume"},
		{"annotated", volumeN1, change(volumeN1, "annotations: {", "annotations: {x: y, "), "change the size of a volume"},
		{"labelled", volumeN1, change(volumeN1, "labels: {", "labels: {x: y"), "change the size of a volume"},
		{"no longer annotated", volumeN1, change(volumeN1, "pv.kubernetes.io/provisioned-by: stargate.csi.dev", ""), "change the size of a volume"},
		{"of another driver", change(volumeN1, "driver: stargate", "driver: other"), change(volumeN1, "driver: stargate", "driver: other", "1Gi", "2Gi"), "of the driver only"},
	} {
		in := map[string]any{"object": read(t, c.is), "oldObject": read(t, c.was), "request": map[string]any{
			"operation": "UPDATE", "userInfo": map[string]any{"username": "system:serviceaccount:ns:rel-resizer"}}}
		said := refusalsOf(t, "rel-csi-sizes", in)
		fits(t, said, c.words, "%s", c.what)
	}
}

// TestResizerTokenClaims checks that the resizer may change only the size in a claim's status. In
// the same request, the API server would also accept metadata.
func TestResizerTokenClaims(t *testing.T) {
	bound := change(claimN1, "spec: {", "status: {phase: Bound, accessModes: [ReadWriteMany], capacity: {storage: 1Gi}}, spec: {")
	for _, c := range []struct{ what, is, words string }{
		{"grown", change(bound, "capacity: {storage: 1Gi}", "capacity: {storage: 2Gi}, conditions: [{type: Resizing, status: 'True'}]"), ""},
		{"grown without the node", change(bound, "annotations: {", "annotations: {volume.kubernetes.io/node-expansion-not-required: 'true', "), ""},
		{"annotated", change(bound, "annotations: {", "annotations: {x: y, "), "nothing else"},
		{"sent to another node", change(bound, "selected-node: n1", "selected-node: n2"), "nothing else"},
		{"labelled", change(bound, "metadata: {", "metadata: {labels: {a: b}, "), "nothing else"},
		{"without protection", change(bound, "[kubernetes.io/pvc-protection]", "[]"), "nothing else"},
		{"lost", change(bound, "Bound", "Lost"), "nothing else"},
		{"without a phase", change(bound, "phase: Bound, ", ""), "nothing else"},
		{"for one node alone", change(bound, "ReadWriteMany", "ReadWriteOnce"), "nothing else"},
	} {
		in := map[string]any{"object": read(t, c.is), "oldObject": read(t, bound), "request": map[string]any{
			"operation": "UPDATE", "userInfo": map[string]any{"username": "system:serviceaccount:ns:rel-resizer"}}}
		said := refusalsOf(t, "rel-csi-claim-sizes", in)
		fits(t, said, c.words, "%s", c.what)
	}
}

// TestOwners checks that no token can set or remove the owner of an object. The garbage collector
// deletes an object whose owners do not exist. The exception is a node's capacity, which is deleted
// with the pod that has reported it.
func TestOwners(t *testing.T) {
	const owner = "metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: none, uid: 00000000-0000-4000-8000-000000000001}], "
	things := map[string]string{"volumes": volumeN1, "volume-changes": volumeN1, "sizes": volumeN1, "claim-sizes": claimN1, "claims": claimN1, "nodes": nodeN1, "contents": contentN1, "snapshots": snapshotA,
		"capacities": roomN1}
	found := 0
	for _, p := range list[*admission.ValidatingAdmissionPolicy](rendered(t, "sidecar")) {
		policy, ours := strings.CutPrefix(p.Name, "rel-csi-")
		if !ours || policy == "bound" { // the policy for writes of others
			continue
		}
		found++
		thing, known := things[policy]
		check(t, known, "policy %s: the test has no object for it", policy)
		if !known {
			continue
		}
		name := "system:serviceaccount:ns:rel-csi"
		if strings.HasSuffix(policy, "sizes") {
			name = "system:serviceaccount:ns:rel-resizer"
		}
		owned := change(thing, "metadata: {", owner)
		for _, c := range []struct {
			operation admission.OperationType
			was, is   string
		}{{"CREATE", "", owned}, {"UPDATE", thing, owned}, {"UPDATE", owned, thing}} {
			if !slices.ContainsFunc(p.Spec.MatchConstraints.ResourceRules, func(rule admission.NamedRuleWithOperations) bool {
				return slices.Contains(rule.Operations, c.operation)
			}) {
				continue
			}
			said := refusalsOf(t, p.Name, map[string]any{"object": read(t, c.is), "oldObject": read(t, c.was), "request": map[string]any{
				"operation": string(c.operation), "userInfo": map[string]any{"username": name, "extra": map[string]any{"authentication.kubernetes.io/node-name": []any{"n1"}}}}})
			refused := strings.Contains(strings.Join(said, "\n"), "may not set the owner of an object")
			check(t, refused == (policy != "capacities"), "%s, %s with an owner: %q", policy, c.operation, said)
		}
	}
	check(t, found > 0, "there are no policies")
}
