// SPDX-License-Identifier: Apache-2.0

// Package release looks at a cluster for the chart: before it is uninstalled, and after it has been
// installed.
package release

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const shown = 5

// NoVolumes fails when there are volumes of the driver: without it nobody deletes them, and no pod
// that has one can be started or ended.
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
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	what := strings.Join(names[:min(shown, len(names))], ", ")
	if len(names) > shown {
		what += ", ..."
	}
	return fmt.Errorf("%d volumes of %s are left (%s): delete their claims first, or uninstall with --no-hooks: "+
		"they and their data stay then, for when it is installed again", len(names), driver, what)
}
