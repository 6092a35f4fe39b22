// SPDX-License-Identifier: Apache-2.0

// Package kubectl contains the commands of the kubectl plugin. It reads the state of the driver,
// its zones and its volumes from the API server, with the rights of the person who runs it. It
// changes nothing, with one exception: the command fence runs a program in the driver's pod that
// fences a system.
package kubectl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"stargate/csi-driver/internal/nodemeta"
	"stargate/csi-driver/internal/pool"
)

const (
	driverLabel = "app.kubernetes.io/name=stargate-csi"
	keeperLabel = "app.kubernetes.io/name=stargate-keeper"
	driverProg  = "driver"    // container of the driver's pod
	metricsPort = "metrics"   // port of that container
	mebi        = 1024 * 1024 // unit of the label with a zone's size
)

// Facts is the state of the cluster at one moment, as far as the plugin needs it.
type Facts struct {
	Driver     string
	Installed  bool // there is a CSIDriver
	Nodes      []corev1.Node
	Registered map[string]bool // nodes whose kubelet knows the driver
	Capacities []storagev1.CSIStorageCapacity
	Classes    []storagev1.StorageClass
	Volumes    []corev1.PersistentVolume // the driver's volumes
	Claims     []corev1.PersistentVolumeClaim
	Pods       []corev1.Pod   // users' pods
	Drivers    []corev1.Pod   // pods of the driver
	Keepers    []corev1.Pod   // pods of the keeper of mounts by FUSE
	Events     []corev1.Event // Events of type Warning
}

// Gather reads the facts. Claims, pods and Events are those of one namespace, or of all of them.
// Nodes' Events are read in any case.
func Gather(ctx context.Context, client kubernetes.Interface, driver, namespace string) (*Facts, error) {
	f := &Facts{Driver: driver, Registered: map[string]bool{}}
	all := metav1.ListOptions{}
	warnings := metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning}
	steps := []struct {
		what string
		read func() error
	}{
		{"CSIDriver", func() error {
			_, err := client.StorageV1().CSIDrivers().Get(ctx, driver, metav1.GetOptions{})
			f.Installed = err == nil
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}},
		{"nodes", func() error {
			list, err := client.CoreV1().Nodes().List(ctx, all)
			f.Nodes = list.Items
			return err
		}},
		{"CSINodes", func() error {
			list, err := client.StorageV1().CSINodes().List(ctx, all)
			for _, n := range list.Items {
				f.Registered[n.Name] = slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
			}
			return err
		}},
		{"CSIStorageCapacities", func() error {
			list, err := client.StorageV1().CSIStorageCapacities("").List(ctx, all)
			f.Capacities = list.Items
			return err
		}},
		{"StorageClasses", func() error {
			list, err := client.StorageV1().StorageClasses().List(ctx, all)
			f.Classes = list.Items
			return err
		}},
		{"PersistentVolumes", func() error {
			list, err := client.CoreV1().PersistentVolumes().List(ctx, all)
			f.Volumes = slices.DeleteFunc(list.Items, func(v corev1.PersistentVolume) bool {
				return v.Spec.CSI == nil || v.Spec.CSI.Driver != driver
			})
			return err
		}},
		{"PersistentVolumeClaims", func() error {
			list, err := client.CoreV1().PersistentVolumeClaims(namespace).List(ctx, all)
			f.Claims = list.Items
			return err
		}},
		{"pods", func() error {
			list, err := client.CoreV1().Pods(namespace).List(ctx, all)
			f.Pods = list.Items
			return err
		}},
		{"the driver's pods", func() error {
			list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: driverLabel})
			f.Drivers = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !isDriver(&p) || argument(&p, "driver-name") != driver })
			return err
		}},
		{"the keeper's pods", func() error {
			list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: keeperLabel})
			f.Keepers = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
				return !slices.ContainsFunc(f.Drivers, func(d corev1.Pod) bool { return d.Namespace == p.Namespace })
			})
			return err
		}},
		{"Events", func() error {
			list, err := client.CoreV1().Events(namespace).List(ctx, warnings)
			f.Events = list.Items
			return err
		}},
		{"Events of nodes", func() error {
			if namespace == metav1.NamespaceAll || namespace == metav1.NamespaceDefault {
				return nil
			}
			list, err := client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, warnings)
			f.Events = append(f.Events, slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.InvolvedObject.Kind != "Node" })...)
			return err
		}},
	}
	for _, s := range steps {
		if err := s.read(); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", s.what, err)
		}
	}
	slices.SortFunc(f.Nodes, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return f, nil
}

// isDriver reports whether a pod with the driver's label can be the driver, which is privileged.
// Anybody who may create pods can set the label and the arguments. The plugin would run programs in
// that pod, and print commands with its arguments. A user who may create privileged pods has the
// node's rights anyway.
func isDriver(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == driverProg && c.SecurityContext != nil && ptr.Deref(c.SecurityContext.Privileged, false)
	})
}

// argument returns the value of an argument of the driver, such as its name; "" if there is none.
func argument(p *corev1.Pod, name string) string {
	for _, c := range p.Spec.Containers {
		if c.Name != driverProg {
			continue
		}
		for _, a := range c.Args {
			if value, found := strings.CutPrefix(a, "--"+name+"="); found {
				return value
			}
		}
	}
	return ""
}

// on returns the pod of a node, or nil.
func on(pods []corev1.Pod, node string) *corev1.Pod {
	for i := range pods {
		if pods[i].Spec.NodeName == node && pods[i].DeletionTimestamp == nil {
			return &pods[i]
		}
	}
	return nil
}

// whyNotReady returns the reason why a pod is not ready, or "" if the pod is ready.
func whyNotReady(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	for _, s := range append(slices.Clone(p.Status.InitContainerStatuses), p.Status.ContainerStatuses...) {
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "" && s.State.Waiting.Reason != "PodInitializing":
			return fmt.Sprintf("container %s: %s", s.Name, strings.TrimSuffix(s.State.Waiting.Reason+": "+s.State.Waiting.Message, ": "))
		case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
			return fmt.Sprintf("container %s: exit status %d", s.Name, s.State.Terminated.ExitCode)
		}
	}
	return "phase " + string(cmp.Or(p.Status.Phase, corev1.PodPending))
}

// nodeOf returns the node that has a volume, or "" if the volume names no node.
func (f *Facts) nodeOf(v *corev1.PersistentVolume) string {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return ""
	}
	for _, t := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range t.MatchExpressions {
			if e.Key == nodemeta.Topology(f.Driver) && len(e.Values) > 0 {
				return e.Values[0]
			}
		}
	}
	return ""
}

// volume returns the PersistentVolume of a claim, or nil.
func (f *Facts) volume(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	for i := range f.Volumes {
		if r := f.Volumes[i].Spec.ClaimRef; r != nil && r.Namespace == c.Namespace && r.Name == c.Name && r.UID == c.UID {
			return &f.Volumes[i]
		}
	}
	return nil
}

// node returns a Node, or nil.
func (f *Facts) node(name string) *corev1.Node {
	for i := range f.Nodes {
		if f.Nodes[i].Name == name {
			return &f.Nodes[i]
		}
	}
	return nil
}

// claim returns a claim, or nil.
func (f *Facts) claim(namespace, name string) *corev1.PersistentVolumeClaim {
	for i := range f.Claims {
		if f.Claims[i].Namespace == namespace && f.Claims[i].Name == name {
			return &f.Claims[i]
		}
	}
	return nil
}

// class returns the StorageClass of a claim, or nil if it is missing.
func (f *Facts) class(c *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	for i := range f.Classes {
		if c.Spec.StorageClassName != nil && f.Classes[i].Name == *c.Spec.StorageClassName {
			return &f.Classes[i]
		}
	}
	return nil
}

// ours reports whether a claim is, or should be, a volume of the driver.
func (f *Facts) ours(c *corev1.PersistentVolumeClaim) bool {
	if class := f.class(c); class != nil {
		return class.Provisioner == f.Driver
	}
	return f.volume(c) != nil
}

// users returns the pods that name a claim and have not ended.
func (f *Facts) users(namespace, claim string) (names []string) {
	for i := range f.Pods {
		p := &f.Pods[i]
		if p.Namespace == namespace && !ended(p) && slices.Contains(claimsOf(p), claim) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// claimsOf returns the names of a pod's claims. A generic ephemeral volume has a claim, too.
func claimsOf(p *corev1.Pod) (names []string) {
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, p.Name+"-"+v.Name)
		}
	}
	return names
}

// warning returns the latest warning about an object with one of these reasons, or with any reason.
func (f *Facts) warning(kind, namespace, name string, reasons ...string) *corev1.Event {
	var last *corev1.Event
	for i := range f.Events {
		e := &f.Events[i]
		o := e.InvolvedObject
		if o.Kind != kind || o.Name != name || kind != "Node" && o.Namespace != namespace {
			continue
		}
		if len(reasons) > 0 && !slices.Contains(reasons, e.Reason) {
			continue
		}
		if last == nil || when(e).After(when(last).Time) {
			last = e
		}
	}
	return last
}

// when returns the last time of an Event. Newer recorders write another field.
func when(e *corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	}
	return metav1.Time{Time: e.EventTime.Time}
}

// size returns the size of a node's zone in bytes. found is false if the node has no zone.
func (f *Facts) size(n *corev1.Node) (bytes int64, found bool) {
	text, found := n.Labels[nodemeta.Size(f.Driver)]
	if !found {
		return 0, false
	}
	mib, err := strconv.ParseInt(text, 10, 64)
	return mib * mebi, err == nil
}

// largest returns the size of the largest volume that can be made on a node.
func (f *Facts) largest(node string) (bytes int64, found bool) {
	for _, c := range f.Capacities {
		if c.NodeTopology == nil || c.NodeTopology.MatchLabels[nodemeta.Topology(f.Driver)] != node {
			continue
		}
		size := c.Capacity
		if c.MaximumVolumeSize != nil {
			size = c.MaximumVolumeSize
		}
		if size != nil {
			bytes, found = max(bytes, size.Value()), true
		}
	}
	return bytes, found
}

// inZone returns the name by which the tools know a volume.
func inZone(v *corev1.PersistentVolume) string { return pool.NameOf(v.Spec.CSI.VolumeHandle) }
