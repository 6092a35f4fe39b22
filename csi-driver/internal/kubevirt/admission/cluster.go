// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"stargate/csi-driver/internal/marks"
)

// Cluster is asked anew with each review: there are few, and what they say is never old.
type Cluster struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Driver  string
}

var (
	kubevirts = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}
	instances = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
)

// How launchers' pods are found, and whose they are.
const (
	launcherLabel = "kubevirt.io=virt-launcher"
	instanceKind  = "VirtualMachineInstance"
)

func convert(u *unstructured.Unstructured, into any) error {
	text, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// kubeVirt is the one installation; nil: there is none.
func (c *Cluster) kubeVirt(ctx context.Context) (*kubevirt, error) {
	list, err := c.Dynamic.Resource(kubevirts).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("KubeVirt's configuration: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	k := &kubevirt{}
	return k, convert(&list.Items[0], k)
}

func (c *Cluster) machines(ctx context.Context, namespace string) ([]instance, error) {
	list, err := c.Dynamic.Resource(instances).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("machines of namespace %s: %w", namespace, err)
	}
	all := make([]instance, len(list.Items))
	for i := range list.Items {
		if err := convert(&list.Items[i], &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// machine is nil if there is none.
func (c *Cluster) machine(ctx context.Context, namespace, name string) (*instance, error) {
	u, err := c.Dynamic.Resource(instances).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("machine %s: %w", name, err)
	}
	m := &instance{}
	return m, convert(u, m)
}

// claim is nil if there is none.
func (c *Cluster) claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	p, err := c.Client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", name, err)
	}
	return p, nil
}

// origin is what a claim's volume is, or will be.
type origin struct {
	driver string // who makes, or has made it; "": nobody yet
	node   string // where it is; "": nowhere yet
	modes  []corev1.PersistentVolumeAccessMode
	memory int64 // that is the volume's own, as its maker has said; 0: not known
}

// readersOnly: kubelet mounts by the first of the access modes, whatever others there are.
func (o origin) readersOnly() bool { return len(o.modes) > 0 && o.modes[0] == corev1.ReadOnlyMany }

func (c *Cluster) origin(ctx context.Context, p *corev1.PersistentVolumeClaim) (origin, error) {
	if p.Spec.VolumeName != "" {
		return c.made(ctx, p)
	}
	o := origin{modes: p.Spec.AccessModes}
	if p.Spec.StorageClassName == nil || *p.Spec.StorageClassName == "" {
		return o, nil
	}
	s, err := c.Client.StorageV1().StorageClasses().Get(ctx, *p.Spec.StorageClassName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return o, nil
	}
	if err != nil {
		return o, fmt.Errorf("class of claim %s: %w", p.Name, err)
	}
	o.driver = s.Provisioner
	return o, nil
}

// made is the origin of a claim that has its volume. One that somebody has written by hand may have other
// access modes than the claim.
func (c *Cluster) made(ctx context.Context, p *corev1.PersistentVolumeClaim) (origin, error) {
	v, err := c.Client.CoreV1().PersistentVolumes().Get(ctx, p.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return origin{}, fmt.Errorf("volume of claim %s: %w", p.Name, err)
	}
	o := origin{node: c.nodeOf(v), modes: v.Spec.AccessModes}
	if v.Spec.CSI != nil {
		o.driver = v.Spec.CSI.Driver
		// A value that is no number is not from our driver.
		o.memory, _ = strconv.ParseInt(v.Spec.CSI.VolumeAttributes[marks.MemoryAttribute], 10, 64)
	}
	return o, nil
}

// reserve is what a claim's class puts behind its volumes.
func (c *Cluster) reserve(ctx context.Context, p *corev1.PersistentVolumeClaim) (int64, error) {
	if p.Spec.StorageClassName == nil || *p.Spec.StorageClassName == "" {
		return 0, nil
	}
	s, err := c.Client.StorageV1().StorageClasses().Get(ctx, *p.Spec.StorageClassName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("class of claim %s: %w", p.Name, err)
	}
	q, err := resource.ParseQuantity(s.Parameters[marks.ReserveParameter])
	if err != nil {
		return 0, nil // there is none, or the driver makes no volume of such a class
	}
	return max(q.Value(), 0), nil
}

// memory is all that a machine maps of a claim's volume: its size and its reserve.
func (c *Cluster) memory(ctx context.Context, p *corev1.PersistentVolumeClaim) (int64, error) {
	q := p.Spec.Resources.Requests[corev1.ResourceStorage]
	if has, there := p.Status.Capacity[corev1.ResourceStorage]; there {
		q = has
	}
	size := q.Value()
	if p.Spec.VolumeName != "" {
		o, err := c.made(ctx, p)
		if err != nil {
			return 0, err
		}
		if o.memory > 0 {
			return max(size, o.memory), nil
		}
	}
	// It is yet to be made, or a release before this one has made it.
	more, err := c.reserve(ctx, p)
	return size + more, err
}

// nodeOf is what the driver's own topology says.
func (c *Cluster) nodeOf(v *corev1.PersistentVolume) string {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return ""
	}
	for _, term := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == marks.Topology(c.Driver) && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
				return e.Values[0]
			}
		}
	}
	return ""
}

// served tells whether the driver has registered with a node's kubelet.
func (c *Cluster) served(ctx context.Context, node string) (bool, error) {
	n, err := c.Client.StorageV1().CSINodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("node %s: %w", node, err)
	}
	for _, d := range n.Spec.Drivers {
		if d.Name == c.Driver {
			return true, nil
		}
	}
	return false, nil
}

// hostname is a node's label, which need not be its name; empty if there is none.
func (c *Cluster) hostname(ctx context.Context, node string) (string, error) {
	n, err := c.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("node %s: %w", node, err)
	}
	return n.Labels[corev1.LabelHostname], nil
}

// launched are the machines, by name, that have a launcher's pod which has not ended.
func (c *Cluster) launched(ctx context.Context, namespace string) (map[string]bool, error) {
	list, err := c.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: launcherLabel})
	if err != nil {
		return nil, fmt.Errorf("launchers of namespace %s: %w", namespace, err)
	}
	names := map[string]bool{}
	for i := range list.Items {
		p := &list.Items[i]
		if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == instanceKind && !ended(p) {
			names[owner.Name] = true
		}
	}
	return names, nil
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func (c *Cluster) installed(ctx context.Context) (bool, error) {
	_, err := c.Client.StorageV1().CSIDrivers().Get(ctx, c.Driver, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
