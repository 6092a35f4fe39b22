// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"stargate/csi-driver/internal/kubevirt/annotation"
)

// IsMachines reports whether a pod belongs to a VM that has the named PersistentVolume as memory.
type IsMachines = func(ctx context.Context, namespace, pod, uid, pv string) (bool, error)

// ConnectMachines returns such a function that uses the pod's service account.
func ConnectMachines(driver string) (IsMachines, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	client, err := kubernetes.NewForConfig(limited(config))
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return within(askLimit, Machines(client, driver)), nil
}

// within limits the time that one of kubelet's calls waits for the answer.
func within(limit time.Duration, is IsMachines) IsMachines {
	return func(ctx context.Context, namespace, pod, uid, pv string) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return is(ctx, namespace, pod, uid, pv)
	}
}

// Machines returns a function that reads the VM's claims from a pod's annotation, and the claim of
// a PersistentVolume. This takes two requests, however many claims there are. The webhook admits a
// pod with this annotation only from KubeVirt's controller, and refuses changes of the annotation.
func Machines(client kubernetes.Interface, driver string) IsMachines {
	return func(ctx context.Context, namespace, pod, uid, pv string) (bool, error) {
		p, err := client.CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("pod %s/%s: %w", namespace, pod, err)
		}
		if string(p.UID) != uid {
			return false, nil // another pod now has this name
		}
		wanted, err := annotation.Of(p.Annotations, driver)
		if err != nil {
			return false, nil // the webhook refuses VMs with an invalid annotation
		}
		if len(wanted) == 0 || pv == "" {
			return false, nil
		}
		v, err := client.CoreV1().PersistentVolumes().Get(ctx, pv, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("PersistentVolume %s: %w", pv, err)
		}
		of := v.Spec.ClaimRef
		return of != nil && of.UID != "" && of.Namespace == namespace &&
			slices.ContainsFunc(wanted, func(c annotation.Claim) bool { return c.Name == of.Name }), nil
	}
}
