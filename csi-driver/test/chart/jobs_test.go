// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Helm deletes the objects of a hook before it runs the hook again, and after the hook has
// succeeded. A failed Job remains because of its log, but its account and role do not.
const (
	jobStays     = "before-hook-creation,hook-succeeded"
	accountStays = "before-hook-creation,hook-succeeded,hook-failed"
)

// helmTimeout is the default of Helm's flag --timeout.
const helmTimeout = 5 * time.Minute

// hook is a Job that Helm runs, with the rules of its role and the commands of its containers.
type hook struct {
	name, event, rules string
	commands           [][]string
}

func command(words ...string) []string {
	return append([]string{"/usr/local/bin/stargate-release"}, words...)
}

// A rollback evaluates no templates. It runs the hooks of the revision that it restores.
var machinesHook = hook{"rel-csi-machines", "pre-upgrade,pre-rollback", `
- {apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], resourceNames: [rel-webhook], verbs: [get]}
- {apiGroups: [kubevirt.io], resources: [virtualmachines, virtualmachineinstances], verbs: [list]}
- apiGroups: [instancetype.kubevirt.io]
  resources: [virtualmachineinstancetypes, virtualmachineclusterinstancetypes, virtualmachinepreferences, virtualmachineclusterpreferences]
  verbs: [list]
`, [][]string{command("machines", "stargate.csi.dev", "rel-webhook")}}

var volumesHook = hook{"rel-csi-volumes", "pre-delete", `
- {apiGroups: [""], resources: [persistentvolumes], verbs: [list]}
`, [][]string{command("volumes", "stargate.csi.dev")}}

var nodesHook = hook{"rel-csi-nodes", "post-delete", `
- {apiGroups: [""], resources: [nodes], verbs: [get, list, patch]}
`, [][]string{command("nodes", "stargate.csi.dev")}}

var volumesAndSnapshotsHook = hook{volumesHook.name, volumesHook.event, volumesHook.rules + `
- {apiGroups: [snapshot.storage.k8s.io], resources: [volumesnapshotcontents], verbs: [list]}
`, append(volumesHook.commands, command("snapshots", "stargate.csi.dev"))}

func TestHooks(t *testing.T) {
	for name, hooks := range map[string][]hook{
		"dax":       {machinesHook, volumesHook, nodesHook},
		"file":      {machinesHook, volumesHook, nodesHook},
		"none":      {machinesHook, volumesHook, nodesHook},
		"snapshots": {machinesHook, volumesAndSnapshotsHook, nodesHook},
		"unmarked":  {machinesHook, volumesHook}, // nodes have no marks to remove
		"bare":      nil,
		"sidecar": {hook{volumesHook.name, volumesHook.event, volumesAndSnapshotsHook.rules, // KubeVirt stays on
			volumesAndSnapshotsHook.commands}, nodesHook},
	} {
		r := rendered(t, name)
		equal(t, name+": jobs", len(list[*batchv1.Job](r)), len(hooks))
		for _, h := range hooks {
			t.Run(name+": "+h.name, func(t *testing.T) { runs(t, r, h) })
		}
	}
	lacks(t, rendered(t, "bare"), "helm.sh/hook")
	lacks(t, rendered(t, "unmarked"), "helm.sh/hook: post-delete")
	lacks(t, rendered(t, "sidecar"), "rel-csi-machines")
}

// runs checks one hook. The hook's service account is only for this Job, is created before the Job,
// and has exactly these rules.
func runs(t *testing.T, r *rendering, h hook) {
	job := get[*batchv1.Job](t, r, h.name)
	role := get[*rbacv1.ClusterRole](t, r, h.name)
	binding := get[*rbacv1.ClusterRoleBinding](t, r, h.name)
	account := get[*corev1.ServiceAccount](t, r, h.name)
	spec := job.Spec.Template.Spec
	equal(t, "the Job's account", spec.ServiceAccountName, h.name)
	equal(t, "rules of the role", role.Rules, rules(t, h.rules))
	bound(t, binding.RoleRef, "ClusterRole", h.name, binding.Subjects)
	var commands [][]string
	for _, c := range spec.Containers {
		commands = append(commands, c.Command)
		// kubectl describe pod shows the last lines of the log.
		equal(t, "termination message of "+c.Name, c.TerminationMessagePolicy, corev1.TerminationMessageFallbackToLogsOnError)
	}
	equal(t, "commands", commands, h.commands)
	equal(t, "user", *spec.SecurityContext.RunAsUser, int64(65532))
	check(t, *spec.SecurityContext.RunAsNonRoot, "the Job may run as root")
	// A node may have to pull the image first. Helm shows the log of a Job only if the Job ends
	// before Helm's timeout.
	var deadline time.Duration
	if s := job.Spec.ActiveDeadlineSeconds; s != nil {
		deadline = time.Duration(*s) * time.Second
	}
	check(t, deadline >= 4*time.Minute && deadline <= helmTimeout-20*time.Second,
		"the Job has %s, and Helm waits for %s", deadline, helmTimeout)
	for kind, o := range map[string]metav1.Object{"ServiceAccount": account, "ClusterRole": role,
		"ClusterRoleBinding": binding, "Job": job} {
		notes := o.GetAnnotations()
		equal(t, kind+": event", notes["helm.sh/hook"], h.event)
		stays, weight := accountStays, "-1"
		if kind == "Job" {
			stays, weight = jobStays, ""
		}
		equal(t, kind+": deletion policy", notes["helm.sh/hook-delete-policy"], stays)
		equal(t, kind+": weight", notes["helm.sh/hook-weight"], weight)
	}
	// Helm shows the log of a failed Job.
	equal(t, "output log policy", job.Annotations["helm.sh/hook-output-log-policy"], "hook-failed")
	// Selectors of the driver's pods must not select this pod.
	check(t, strings.HasPrefix(job.Spec.Template.Labels["app.kubernetes.io/name"], "stargate-csi-"),
		"the pod has the label of the driver's pods: %v", job.Spec.Template.Labels)
}

// TestHelmTest checks that helm test uses a class whose volumes are deleted with their claims, if
// such a class exists.
func TestHelmTest(t *testing.T) {
	for name, class := range map[string]string{"dax": "stargate", "file": "stargate", "none": "stargate",
		"classes": "first", "kept": "kept"} {
		t.Run(name, func(t *testing.T) {
			r := rendered(t, name)
			claim := get[*corev1.PersistentVolumeClaim](t, r, "rel-csi-test")
			tries := get[*corev1.Pod](t, r, "rel-csi-test")
			equal(t, "class", *claim.Spec.StorageClassName, class)
			equal(t, "command", tries.Spec.Containers[0].Command, command("try", "/volume"))
			for weight, o := range map[string]metav1.Object{"1": claim, "2": tries} {
				equal(t, "event", o.GetAnnotations()["helm.sh/hook"], "test")
				equal(t, "weight", o.GetAnnotations()["helm.sh/hook-weight"], weight)
				equal(t, "deletion policy", o.GetAnnotations()["helm.sh/hook-delete-policy"], jobStays)
			}
		})
	}
}
