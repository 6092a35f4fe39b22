// SPDX-License-Identifier: Apache-2.0

package helmhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"stargate/csi-driver/internal/kubevirt/annotation"
)

// naming has KubeVirt's kinds that can name volumes, and the places of the annotation in them. When
// a VM starts, KubeVirt copies the annotations of its instance type and its preference to the VM.
// So these objects stand for VMs that are stopped.
var naming = []struct {
	kind        schema.GroupResource
	versions    []string // by the first of these versions that the API server has, it lists all objects
	annotations []string
}{
	{machineKind("virtualmachines"), machineVersions, []string{"spec", "template", "metadata", "annotations"}},
	{machineKind("virtualmachineinstances"), machineVersions, []string{"metadata", "annotations"}},
	{typeKind("virtualmachineinstancetypes"), typeVersions, []string{"spec", "annotations"}},
	{typeKind("virtualmachineclusterinstancetypes"), typeVersions, []string{"spec", "annotations"}},
	{typeKind("virtualmachinepreferences"), typeVersions, []string{"spec", "annotations"}},
	{typeKind("virtualmachineclusterpreferences"), typeVersions, []string{"spec", "annotations"}},
}

var machineVersions, typeVersions = []string{"v1"}, []string{"v1", "v1beta1"}

func machineKind(resource string) schema.GroupResource {
	return schema.GroupResource{Group: "kubevirt.io", Resource: resource}
}

func typeKind(resource string) schema.GroupResource {
	return schema.GroupResource{Group: "instancetype.kubevirt.io", Resource: resource}
}

// listed returns all objects of a kind. It returns none if the API server has none of the versions.
// KubeVirt is then not installed, or does not have this kind.
func listed(ctx context.Context, objects dynamic.Interface, kind schema.GroupResource, versions []string) ([]unstructured.Unstructured, error) {
	for _, version := range versions {
		list, err := objects.Resource(kind.WithVersion(version)).List(ctx, metav1.ListOptions{})
		if err == nil {
			return list.Items, nil
		}
		if !errors.IsNotFound(err) {
			return nil, fmt.Errorf("%s %s: %w", kind.Resource, version, err)
		}
	}
	return nil, nil
}

// NoMachines fails if the release has webhooks for KubeVirt and VMs name volumes. A revision
// without these webhooks would remove them, and the VMs would start without their volumes.
func NoMachines(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface, driver, webhooks string) error {
	_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, webhooks, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	var names []string
	for _, n := range naming {
		list, err := listed(ctx, objects, n.kind, n.versions)
		if err != nil {
			return err
		}
		for i := range list {
			o := &list[i]
			of, _, _ := unstructured.NestedStringMap(o.Object, n.annotations...)
			if _, has := of[annotation.Annotation(driver)]; has {
				name := strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
				if n.kind.Group != "kubevirt.io" {
					name = o.GetKind() + " " + name
				}
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return nil
	}
	return fmt.Errorf("kubevirt.enabled is off in this revision, and %d VMs or types of VMs name volumes (%s): VMs would start without them. "+
		"Go to a revision with kubevirt.enabled=true; to start VMs without their volumes, set kubevirt.leaveMachines=true, or use --no-hooks", len(names), few(names))
}
