// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"stargate/csi-driver/internal/dataset"
	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
)

// Datasets reads the objects of data sets, and reports to them.
type Datasets struct {
	*Node
	objects dynamic.NamespaceableResourceInterface
}

var _ dataset.Cluster = (*Datasets)(nil)

// Datasets returns the data sets of the cluster.
func (n *Node) Datasets() *Datasets { return &Datasets{n, n.datasets} }

// ReadDatasets sets the client for Datasets.
func (n *Node) ReadDatasets(client dynamic.Interface) {
	n.datasets = client.Resource(v1alpha1.GroupVersionResource)
}

// unread converts an error of the API server.
func unread(err error, format string, args ...any) error {
	kind := errkind.NoAnswer
	switch {
	case apierrors.IsNotFound(err):
		kind = errkind.NotFound
	case apierrors.IsForbidden(err):
		kind = errkind.InUse
	}
	return errkind.Wrap(kind, err, format, args...)
}

func decoded(o *unstructured.Unstructured) (v1alpha1.StargateDataset, error) {
	var d v1alpha1.StargateDataset
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
		return d, errkind.Wrap(errkind.Invalid, err, "data set %s/%s", o.GetNamespace(), o.GetName())
	}
	return d, nil
}

// Dataset reads one object.
func (c *Datasets) Dataset(ctx context.Context, namespace, name string) (*v1alpha1.StargateDataset, error) {
	ctx, cancel := context.WithTimeout(ctx, c.asks)
	defer cancel()
	o, err := c.objects.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, unread(err, "data set %s/%s", namespace, name)
	}
	d, err := decoded(o)
	return &d, err
}

// Datasets lists all objects. An object that cannot be read counts as one without contents, so its
// copies stay as long as pods have them.
func (c *Datasets) Datasets(ctx context.Context) ([]v1alpha1.StargateDataset, error) {
	ctx, cancel := context.WithTimeout(ctx, c.asks)
	defer cancel()
	list, err := c.objects.List(ctx, recent())
	if err != nil {
		return nil, unread(err, "data sets")
	}
	var all []v1alpha1.StargateDataset
	for i := range list.Items {
		if d, err := decoded(&list.Items[i]); err == nil {
			all = append(all, d)
		}
	}
	return all, nil
}

// Secret reads the Secret that a data set names. The driver may read only the Secrets that the
// operator has listed.
func (c *Datasets) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.asks)
	defer cancel()
	s, err := c.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, errkind.New(errkind.InUse, "the driver may not read Secret %s/%s: the operator has to list it in datasets.secrets", namespace, name)
	case err != nil:
		return nil, unread(err, "Secret %s/%s", namespace, name)
	}
	return s.Data, nil
}

// NodeLabels returns the labels of this node.
func (c *Datasets) NodeLabels(ctx context.Context) (map[string]string, error) {
	n, err := c.node(ctx)
	if err != nil {
		return nil, err
	}
	return n.Labels, nil
}

// NodeAddresses returns the IP addresses of this node.
func (c *Datasets) NodeAddresses(ctx context.Context) ([]netip.Addr, error) {
	n, err := c.node(ctx)
	if err != nil {
		return nil, err
	}
	var all []netip.Addr
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil {
			all = append(all, ip.Unmap())
		}
	}
	return all, nil
}

func (c *Datasets) node(ctx context.Context) (*corev1.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, c.asks)
	defer cancel()
	n, err := c.client.CoreV1().Nodes().Get(ctx, c.name, metav1.GetOptions{})
	if err != nil {
		return nil, unread(err, "node %s", c.name)
	}
	return n, nil
}

// Tell writes this node's entry of the status. A merge patch changes no other entry, and cannot
// conflict with another node's.
func (c *Datasets) Tell(ctx context.Context, namespace, name string, s *v1alpha1.NodeStatus) error {
	ctx, cancel := context.WithTimeout(ctx, c.asks)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"nodes": map[string]any{c.name: s}}})
	if err != nil {
		return fmt.Errorf("data set %s/%s: %w", namespace, name, err)
	}
	_, err = c.objects.Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return unread(err, "data set %s/%s: status", namespace, name)
	}
	return nil
}

// Event reports an event about an object.
func (c *Datasets) Event(d *v1alpha1.StargateDataset, warning bool, reason, words string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	of := &corev1.ObjectReference{
		Kind: v1alpha1.Kind, APIVersion: v1alpha1.Group + "/" + v1alpha1.Version, Namespace: d.Namespace, Name: d.Name, UID: d.UID,
	}
	c.events.Event(of, kind, reason, words)
}
