// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// pagesOfFakes serves lists of VMs and of pods in pages of two.
func pagesOfFakes(c kubernetes.Interface, d dynamic.Interface) pages {
	return func(ctx context.Context, of, _ string, query url.Values) (io.ReadCloser, error) {
		parts := strings.Split(of, "/")
		if last := len(parts) - 1; parts[last-1] == instances.Resource {
			u, err := d.Resource(instances).Namespace(parts[last-2]).Get(ctx, parts[last], metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			text, err := u.MarshalJSON()
			return io.NopCloser(bytes.NewReader(text)), err
		}
		if last := len(parts) - 1; parts[last-1] == "persistentvolumeclaims" {
			p, err := c.CoreV1().PersistentVolumeClaims(parts[last-2]).Get(ctx, parts[last], metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(p)
			return io.NopCloser(bytes.NewReader(text)), err
		}
		namespace := parts[len(parts)-2]
		var all []any
		if parts[len(parts)-1] == "pods" {
			list, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: query.Get("labelSelector")})
			if err != nil {
				return nil, err
			}
			for _, p := range list.Items {
				phase := fields.Set{"status.phase": string(p.Status.Phase)}
				if is, err := fields.ParseSelector(query.Get("fieldSelector")); err != nil || is.Matches(phase) {
					all = append(all, p)
				}
			}
		} else {
			list, err := d.Resource(instances).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for _, m := range list.Items {
				all = append(all, m.Object)
			}
		}
		from, _ := strconv.Atoi(query.Get("continue"))
		to, next := from+2, strconv.Itoa(from+2)
		if to >= len(all) {
			to, next = len(all), ""
		}
		text, err := json.Marshal(map[string]any{"kind": "List", "metadata": map[string]any{"continue": next}, "items": all[from:to]})
		return io.NopCloser(bytes.NewReader(text)), err
	}
}
