// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"stargate/csi-driver/internal/nodemeta"
)

// Tell writes the result to the Node's annotation DRIVER/module. If the module is missing, or has
// another release, Tell also writes an Event on the Node.
func Tell(ctx context.Context, client kubernetes.Interface, c clock.PassiveClock, driver, name string, r Result) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{nodemeta.Module(driver): r.String()}}})
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	if r.Why == "" {
		return nil
	}
	reason := "NoModule"
	if r.How != None {
		reason = "OtherModule"
	}
	now := metav1.NewTime(c.Now())
	_, err = client.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: name + ".", Namespace: metav1.NamespaceDefault},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: name, UID: types.UID(name)},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: r.String(), Source: corev1.EventSource{Component: driver, Host: name},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("node %s: event: %w", name, err)
	}
	return nil
}
