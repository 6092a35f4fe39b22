// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KubeVirt's roles let the administrator of a namespace create a KubeVirt object there. KubeVirt
// does not install that object, so the webhook must ignore it. It refuses no VM because of that
// object, and trusts no controller in its namespace.
func TestAnotherKubeVirt(t *testing.T) {
	for namespace, status := range map[string]any{"aaa": map[string]any{}, "aab": map[string]any{"phase": "Failed"}} {
		r := usual().reviewer(t)
		_, err := r.cluster.Dynamic.Resource(kubevirts).Namespace(namespace).Create(context.Background(),
			object("KubeVirt", namespace, "kubevirt", map[string]any{"spec": map[string]any{}, "status": status}), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		k, err := r.anew().cluster.kubeVirt(context.Background())
		if err != nil || k == nil || k.Namespace != "kubevirt" || k.Status.Version == "" {
			t.Errorf("%s: %+v, %v", namespace, k, err)
		}
	}
}

// The volumes of a VM that runs cannot change: its pod keeps the volumes with which it was created.
func TestRunningMachines(t *testing.T) {
	r := usual().reviewer(t)
	vmi := func(metadata string) []byte {
		return []byte(`{"metadata":{` + metadata + `"name":"vm"},"spec":{"domain":{}}}`)
	}
	named := func(volumes string) string { return fmt.Sprintf(`"annotations":{%q:%q},`, driver+"/volumes", volumes) }
	const going, other = `"deletionTimestamp":"2026-01-01T00:00:00Z",`, `"labels":{"a":"b"},`
	for what, c := range map[string]struct {
		was, is string
		allowed bool
	}{
		"labelled":                {named("data"), named("data") + other, true},
		"other volumes":           {named("data"), named("models:ro"), false},
		"one more":                {named("data"), named("data,models:ro"), false},
		"no volumes any more":     {named("data"), "", false},
		"volumes where none were": {"", named("data"), false},
		"an empty text":           {"", named(""), false},
		"going away":              {named("data"), going, true},
	} {
		q := request("virtualmachineinstances", admissionv1.Update, vmi(c.is))
		q.OldObject.Raw = vmi(c.was)
		res := r.answer(context.Background(), q, r.Validate)
		if res.Allowed != c.allowed || !c.allowed && !strings.Contains(res.Result.Message, "that runs cannot change") {
			t.Errorf("%s: %+v", what, res)
		}
	}
}
