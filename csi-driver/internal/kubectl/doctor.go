// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"stargate/csi-driver/internal/nodemeta"
)

// Finding is one problem, and the command that mends it or shows more of it.
type Finding struct {
	Subject string `json:"subject"` // kind/name, or kind/namespace/name
	Problem string `json:"problem"`
	Command string `json:"command"`
}

// Subject selects what to examine. The zero value selects everything.
type Subject struct{ Kind, Namespace, Name string }

// ParseSubject understands KIND/NAME, with the short names of kubectl.
func ParseSubject(namespace, text string) (Subject, error) {
	kind, name, two := strings.Cut(text, "/")
	kinds := map[string]string{
		"pvc": kindClaim, "claim": kindClaim, "persistentvolumeclaim": kindClaim, "pod": kindPod, "po": kindPod,
		"node": kindNode, "no": kindNode, "vm": kindMachine, "virtualmachine": kindMachine,
	}
	is := kinds[strings.TrimSuffix(strings.ToLower(kind), "s")]
	if !two || is == "" || name == "" {
		return Subject{}, fmt.Errorf("%q is no subject: write pvc/NAME, pod/NAME, vm/NAME or node/NAME", text)
	}
	return Subject{is, namespace, name}, nil
}

const (
	kindClaim    = "PersistentVolumeClaim"
	kindPod      = "Pod"
	kindNode     = "Node"
	kindMachine  = "VirtualMachine"
	kindInstance = "VirtualMachineInstance"
)

func (s Subject) includes(kind, namespace, name string) bool {
	return s.Kind == "" || s.Kind == kind && s.Name == name && (kind == kindNode || s.Namespace == namespace)
}

// Doctor returns the problems of a subject, the cause of other problems first.
func (f *Facts) Doctor(s Subject) []Finding {
	if !f.Installed {
		return []Finding{{"CSIDriver/" + f.Driver, "The driver is not installed in this cluster.", "helm install stargate charts/stargate --namespace stargate-system --create-namespace"}}
	}
	var found []Finding
	if s.Kind == "" && len(f.Drivers) == 0 {
		found = append(found, Finding{"CSIDriver/" + f.Driver, "No node runs the driver.", "kubectl get daemonsets --all-namespaces --selector " + driverLabel})
	}
	for i := range f.Nodes {
		if s.includes(kindNode, "", f.Nodes[i].Name) {
			found = append(found, f.checkNode(&f.Nodes[i])...)
		}
	}
	for i := range f.Claims {
		if c := &f.Claims[i]; s.includes(kindClaim, c.Namespace, c.Name) {
			found = append(found, f.checkClaim(c, s.Kind != "")...)
		}
	}
	for i := range f.Pods {
		if p := &f.Pods[i]; s.includes(kindPod, p.Namespace, p.Name) {
			found = append(found, f.checkPod(p)...)
		}
	}
	return append(found, f.checkMachines(s)...)
}

// Exists reports whether the facts contain a subject. A VM may exist without a trace in them.
func (f *Facts) Exists(s Subject) bool {
	switch s.Kind {
	case kindClaim:
		return f.claim(s.Namespace, s.Name) != nil
	case kindPod:
		return slices.ContainsFunc(f.Pods, func(p corev1.Pod) bool { return p.Namespace == s.Namespace && p.Name == s.Name })
	case kindNode:
		return f.node(s.Name) != nil
	}
	return true
}

// checkNode returns the problems that prevent volumes on a node that runs the driver.
func (f *Facts) checkNode(n *corev1.Node) []Finding {
	find := func(command, problem string, args ...any) []Finding {
		return []Finding{{"Node/" + n.Name, fmt.Sprintf(problem, args...), command}}
	}
	d := on(f.Drivers, n.Name)
	if d == nil {
		if f.serves(n.Name) {
			return find("kubectl describe node "+n.Name, "The node has volumes, but does not run the driver.")
		}
		return nil
	}
	if why := whyNotReady(d); why != "" {
		return find(logs(d, driverProg), "The driver's pod is not ready: %s.", strings.TrimSuffix(why, "."))
	}
	if !f.Registered[n.Name] {
		return find(fmt.Sprintf("kubectl --namespace %s delete pod %s", d.Namespace, d.Name), "Kubelet has not registered the driver, although the driver's pod is ready.")
	}
	if _, has := f.size(n); !has && f.none(d) {
		return nil // the chart installs no zone here
	} else if e := f.warning(kindNode, "", n.Name, "NoModule", "OtherModule", "ZoneDamaged", "NoZone", "ZoneUnknown"); !has {
		if e == nil {
			return find(logs(d, driverProg), "The node has no zone.")
		}
		return find(f.mend(e.Reason, n, d), "The node offers no volumes (%s): %s.", e.Reason, sentence(e.Message))
	} else if e != nil && e.Reason == "ZoneDamaged" && !f.offers(n.Name) {
		return find(f.mend(e.Reason, n, d), "The zone is damaged: %s.", sentence(e.Message))
	}
	var found []Finding
	if k := on(f.Keepers, n.Name); k != nil {
		if why := whyNotReady(k); why != "" {
			found = append(found, find(logs(k, "keeper"), "The keeper of mounts by FUSE is not ready, so pods cannot mount volumes: %s.", strings.TrimSuffix(why, "."))...)
		}
	} else if argument(d, "keeper") != "" {
		found = append(found, find("kubectl get daemonsets --all-namespaces --selector "+keeperLabel, "The node runs no keeper of mounts by FUSE, so pods cannot mount volumes.")...)
	}
	if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == nodemeta.NotReady(f.Driver) }) {
		found = append(found, find(logs(d, driverProg), "The taint %s keeps pods away, although the node has a zone.", nodemeta.NotReady(f.Driver))...)
	}
	if e := f.warning(kindNode, "", n.Name, "VolumeOrphaned"); e != nil {
		found = append(found, find("kubectl describe node "+n.Name, "A volume on this node belongs to no claim: %s.", sentence(e.Message))...)
	}
	return found
}

// none reports whether the driver runs without a zone on purpose.
func (f *Facts) none(driver *corev1.Pod) bool { return argument(driver, "zone-kind") == "none" }

// serves reports whether volumes are on a node.
func (f *Facts) serves(node string) bool {
	return slices.ContainsFunc(f.Volumes, func(v corev1.PersistentVolume) bool { return f.nodeOf(&v) == node })
}

// offers reports whether a volume of any size can be made on a node.
func (f *Facts) offers(node string) bool {
	largest, found := f.largest(node)
	return found && largest > 0
}

// zoneName matches names of zones. A person pastes the command into a shell.
var zoneName = regexp.MustCompile(`^[A-Za-z0-9+_.][A-Za-z0-9+_.-]*$`)

// mend returns a command for a problem that the driver has reported.
func (f *Facts) mend(reason string, n *corev1.Node, d *corev1.Pod) string {
	switch reason {
	case "NoModule", "OtherModule":
		return logs(d, "module")
	case "NoZone":
		if zone := argument(d, "zone"); zoneName.MatchString(zone) {
			return fmt.Sprintf("stargatectl zone create %s DEVICE   # on node %s", zone, n.Name)
		}
	case "ZoneDamaged":
		if zone := argument(d, "zone"); zoneName.MatchString(zone) {
			return fmt.Sprintf("stargatectl zone show %s   # on node %s", zone, n.Name)
		}
	}
	return logs(d, driverProg)
}

// checkClaim returns the reason why a claim has no volume, or why its volume cannot be used. A
// claim that waits for its first pod is in order, but a person who asks about it gets an answer.
func (f *Facts) checkClaim(c *corev1.PersistentVolumeClaim, asked bool) []Finding {
	describe := fmt.Sprintf("kubectl --namespace %s describe pvc %s", c.Namespace, c.Name)
	find := func(command, problem string, args ...any) []Finding {
		return []Finding{{fmt.Sprintf("PersistentVolumeClaim/%s/%s", c.Namespace, c.Name), fmt.Sprintf(problem, args...), command}}
	}
	if c.Status.Phase == corev1.ClaimLost {
		return find(describe, "The PersistentVolume %s is gone, together with the content of the claim.", c.Spec.VolumeName)
	}
	class := f.class(c)
	if class == nil && c.Status.Phase == corev1.ClaimPending {
		if !asked {
			return nil // the claim may be for any driver
		}
		if name := ptr.Deref(c.Spec.StorageClassName, ""); name != "" {
			return find("kubectl get storageclasses", "The StorageClass %s does not exist.", name)
		}
		return find("kubectl get storageclasses", "The claim names no StorageClass.")
	}
	if !f.ours(c) {
		if asked {
			return find(describe, "The claim belongs to another driver (%s).", provisioner(class))
		}
		return nil
	}
	if c.Status.Phase != corev1.ClaimPending {
		return f.checkVolume(c, find)
	}
	if ptr.Deref(c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock {
		return find(describe, "volumeMode is Block, and volumes are file systems: use Filesystem.")
	}
	if e := f.warning(kindClaim, c.Namespace, c.Name, "VolumeNotSaved", "VolumeNotBound", "ProvisioningFailed"); e != nil {
		return find(describe, "%s: %s.", e.Reason, sentence(e.Message))
	}
	users := f.users(c.Namespace, c.Name)
	if waits := class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer; waits && len(users) == 0 {
		if !asked {
			return nil
		}
		return find(fmt.Sprintf("kubectl --namespace %s apply -f POD.yaml", c.Namespace), "No pod uses the claim. The driver makes the claim's volume when the first pod that uses the claim is scheduled.")
	}
	if want := c.Spec.Resources.Requests[corev1.ResourceStorage]; f.tooLarge(want) {
		node, largest := f.roomiest()
		if node == "" {
			return find("kubectl stargate zones", "No node offers volumes.")
		}
		return find("kubectl stargate zones", "The claim requests %s, and the largest volume that a node can make is %s (node %s).", want.String(), printSize(largest), node)
	}
	return find(describe, "The volume is being made, or its pod is not scheduled (%s).", strings.Join(users, ", "))
}

// checkVolume returns why the volume of a bound claim cannot be used.
func (f *Facts) checkVolume(c *corev1.PersistentVolumeClaim, find func(command, problem string, args ...any) []Finding) []Finding {
	v := f.volume(c)
	if v == nil {
		return nil
	}
	node := f.nodeOf(v)
	switch n := f.node(node); {
	case node != "" && n == nil:
		return find("kubectl delete pvc --namespace "+c.Namespace+" "+c.Name, "The claim's volume was on node %s, which is gone, together with the content of the volume.", node)
	case n != nil && !nodeReady(n):
		return find("kubectl describe node "+node, "The claim's volume is on node %s, which is not ready.", node)
	}
	if e := f.warning(kindClaim, c.Namespace, c.Name, "VolumeUnusable", "MountShutDown"); e != nil {
		return find(fmt.Sprintf("kubectl --namespace %s describe pvc %s", c.Namespace, c.Name), "%s: %s.", e.Reason, sentence(e.Message))
	}
	for _, condition := range c.Status.Conditions {
		if condition.Type == corev1.PersistentVolumeClaimFileSystemResizePending && condition.Status == corev1.ConditionTrue {
			return find("kubectl stargate zones", "The volume does not grow: %s.", sentence(f.whyNotGrown(c)))
		}
	}
	return nil
}

// whyNotGrown returns the reason that a pod's Events have.
func (f *Facts) whyNotGrown(c *corev1.PersistentVolumeClaim) string {
	for _, name := range f.users(c.Namespace, c.Name) {
		if e := f.warning(kindPod, c.Namespace, name, "FileSystemResizeFailed", "VolumeResizeFailed"); e != nil {
			return e.Message
		}
	}
	return "no pod uses the volume, or the node has not grown the volume yet"
}

// checkPod returns the reason why a pod with a volume of the driver does not start.
func (f *Facts) checkPod(p *corev1.Pod) []Finding {
	if ended(p) || p.Status.Phase == corev1.PodRunning || !f.uses(p) {
		return nil
	}
	describe := fmt.Sprintf("kubectl --namespace %s describe pod %s", p.Namespace, p.Name)
	find := func(command, problem string, args ...any) []Finding {
		return []Finding{{fmt.Sprintf("Pod/%s/%s", p.Namespace, p.Name), fmt.Sprintf(problem, args...), command}}
	}
	if p.Spec.NodeName == "" {
		for _, name := range claimsOf(p) {
			c := f.claim(p.Namespace, name)
			if c == nil {
				return find(fmt.Sprintf("kubectl --namespace %s get pvc", p.Namespace), "The claim %s does not exist.", name)
			}
			v := f.volume(c)
			if v == nil {
				continue
			}
			if n := f.node(f.nodeOf(v)); n != nil && n.Spec.Unschedulable {
				return find("kubectl uncordon "+n.Name, "The volume of claim %s is on node %s, where no pod may be scheduled.", name, n.Name)
			}
		}
		if e := f.warning(kindPod, p.Namespace, p.Name, "FailedScheduling"); e != nil {
			return find(describe, "The pod is not scheduled: %s.", sentence(e.Message))
		}
		return nil
	}
	if d := on(f.Drivers, p.Spec.NodeName); d == nil {
		return find("kubectl get pods --all-namespaces --output wide --selector "+driverLabel, "Node %s does not run the driver, so the pod cannot get its volume.", p.Spec.NodeName)
	} else if why := whyNotReady(d); why != "" {
		return find(logs(d, driverProg), "The driver's pod on node %s is not ready: %s.", p.Spec.NodeName, strings.TrimSuffix(why, "."))
	}
	if e := f.warning(kindPod, p.Namespace, p.Name, "FailedMount", "FailedMapVolume", "FailedAttachVolume"); e != nil {
		return find(describe, "The pod does not get its volume: %s.", sentence(e.Message))
	}
	return nil
}

// uses reports whether a pod has a volume of the driver.
func (f *Facts) uses(p *corev1.Pod) bool {
	for _, v := range p.Spec.Volumes {
		if v.CSI != nil && v.CSI.Driver == f.Driver {
			return true
		}
	}
	return slices.ContainsFunc(claimsOf(p), func(name string) bool {
		c := f.claim(p.Namespace, name)
		return c != nil && f.ours(c)
	})
}

// checkMachines returns warnings about VMs. KubeVirt's objects are not read: its refusals are
// Events of the VM, and of the VM's pod.
func (f *Facts) checkMachines(s Subject) (found []Finding) {
	told := map[string]bool{}
	for i := range f.Events {
		o := f.Events[i].InvolvedObject
		if o.Kind != kindMachine && o.Kind != kindInstance || !s.includes(kindMachine, o.Namespace, o.Name) {
			continue
		}
		// The API server does not check this name. People paste the command into a shell.
		if len(validation.IsDNS1123Subdomain(o.Name)) > 0 {
			continue
		}
		e := f.warning(o.Kind, o.Namespace, o.Name)
		key := o.Namespace + "/" + o.Name
		if told[key] || s.Kind == "" && !strings.Contains(e.Message, f.Driver) {
			continue
		}
		told[key] = true
		found = append(found, Finding{"VirtualMachine/" + key, fmt.Sprintf("%s: %s.", e.Reason, sentence(e.Message)), fmt.Sprintf("kubectl --namespace %s describe vm %s", o.Namespace, o.Name)})
	}
	return found
}

// tooLarge reports whether no node can make a volume of this size.
func (f *Facts) tooLarge(want resource.Quantity) bool {
	_, largest := f.roomiest()
	return want.Value() > largest
}

// roomiest returns the node that can make the largest volume.
func (f *Facts) roomiest() (node string, bytes int64) {
	for i := range f.Nodes {
		if size, found := f.largest(f.Nodes[i].Name); found && size > bytes {
			node, bytes = f.Nodes[i].Name, size
		}
	}
	return node, bytes
}

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func provisioner(class *storagev1.StorageClass) string {
	if class == nil {
		return "none"
	}
	return class.Provisioner
}

func logs(p *corev1.Pod, container string) string {
	return fmt.Sprintf("kubectl --namespace %s logs %s --container %s", p.Namespace, p.Name, container)
}

// sentence makes one line of a message, without its full stop.
func sentence(message string) string {
	return strings.TrimRight(strings.Join(strings.Fields(message), " "), ".")
}
