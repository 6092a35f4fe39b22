// SPDX-License-Identifier: Apache-2.0

// Package helmhooks implements the chart's hooks. They check whether the release may be
// uninstalled, or may change to a revision without KubeVirt. They remove the driver's marks from
// nodes after an uninstallation, and test a volume after an installation.
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
)

const shown = 5

// NoVolumes fails if volumes of the driver exist. Without the driver, these volumes cannot be
// deleted, and pods that use them can neither start nor end.
func NoVolumes(ctx context.Context, client kubernetes.Interface, driver string) error {
	list, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("volumes: %w", err)
	}
	var names []string
	for _, pv := range list.Items {
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != driver {
			continue
		}
		name := pv.Name
		if c := pv.Spec.ClaimRef; c != nil {
			name = c.Namespace + "/" + c.Name
		}
		names = append(names, name)
	}
	return left("volumes of "+driver, "delete their claims first", names)
}

// The kind of snapshots exists only in clusters in which it was installed.
var snapshots = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshotcontents"}

// NoSnapshots fails if snapshots of the driver exist, which only the driver can delete.
func NoSnapshots(ctx context.Context, client dynamic.Interface, driver string) error {
	list, err := client.Resource(snapshots).List(ctx, metav1.ListOptions{})
	if errors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("snapshots: %w", err)
	}
	var names []string
	for _, content := range list.Items {
		of, _, _ := unstructured.NestedString(content.Object, "spec", "driver")
		if of != driver {
			continue
		}
		name := content.GetName()
		if at, found, _ := unstructured.NestedStringMap(content.Object, "spec", "volumeSnapshotRef"); found {
			name = at["namespace"] + "/" + at["name"]
		}
		names = append(names, name)
	}
	return left("snapshots of "+driver, "delete them first", names)
}

// left returns an error that names the remaining objects, or nil if there are none.
func left(what, remedy string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("%d %s are left (%s): %s, or uninstall with --no-hooks: they and their data then remain "+
		"until the chart is installed again", len(names), what, few(names), remedy)
}

// few returns the first few names, for a message.
func few(names []string) string {
	list := strings.Join(names[:min(shown, len(names))], ", ")
	if len(names) > shown {
		list += ", ..."
	}
	return list
}
