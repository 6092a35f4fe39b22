// SPDX-License-Identifier: Apache-2.0

package helmhooks

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"stargate/csi-driver/internal/nodemeta"
)

// ForgetNodes removes the driver's labels, annotations and taints from all nodes, and returns the
// number of changed nodes. Call it after the deletion of the driver's role, so that a driver that
// still runs cannot set them again. If one node cannot be changed, the other nodes still are.
func ForgetNodes(ctx context.Context, client kubernetes.Interface, driver string) (string, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("nodes: %w", err)
	}
	changed := 0
	var failed []error
	forget := func(node *corev1.Node) { nodemeta.Clear(node, driver) }
	for i := range nodes.Items {
		did, err := nodemeta.Change(ctx, client, &nodes.Items[i], forget)
		switch {
		case did:
			changed++
		case err != nil && !apierrors.IsNotFound(err): // the node was deleted meanwhile
			failed = append(failed, err)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return "", fmt.Errorf("labels and taints of %s are still on nodes: %w", driver, err)
	}
	return fmt.Sprintf("%d of %d nodes had something of %s", changed, len(nodes.Items), driver), nil
}
