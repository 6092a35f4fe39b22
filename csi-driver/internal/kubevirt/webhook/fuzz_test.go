// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// The webhook answers any request: either it reports that the request is no review, or it returns a
// verdict and a patch. The patch applies to the object, and mounts claims only in their own
// folders.
func FuzzReview(f *testing.F) {
	pod := `{"metadata":{"annotations":{"` + driver + `/volumes":"data"}},"spec":{"containers":[{"name":"compute"},
		{"name":"h","image":"img:1","command":["` + hookProgram + `"],"args":["--driver-name=` + driver + `"]}]}}`
	for resource, objects := range map[string][]string{
		"virtualmachineinstances":          {string(machineWith("data,models:ro", nil)), string(machineWith("../../etc", nil)), `{"metadata":{"annotations":null}}`, `[]`},
		"virtualmachines":                  {`{"spec":{"template":` + string(machineWith("data", nil)) + `}}`, `{"spec":{"template":null}}`, `{}`},
		"pods":                             {pod, strings.Replace(pod, "compute", "other", 1), strings.Replace(pod, `"data"`, `"data/../x"`, 1), `{"spec":{"containers":null}}`},
		"virtualmachineinstancemigrations": {`{"spec":{"vmiName":"owner"}}`, `{"spec":{"vmiName":"../x"}}`},
	} {
		for _, o := range objects {
			f.Add(resource, string(admissionv1.Create), []byte(o))
			f.Add(resource, string(admissionv1.Update), []byte(o))
		}
	}
	f.Add("pods", "", []byte(nil))
	f.Fuzz(func(t *testing.T, resource, operation string, object []byte) {
		for _, api := range []string{Sidecar, Plugin} {
			w := usual()
			w.config.API, w.config.PluginName, w.version = api, "p", "v1.9.0"
			h := w.reviewer(t).Handler(context.Background())
			q := request(resource, admissionv1.Operation(operation), object)
			q.OldObject = q.Object
			text, err := json.Marshal(admissionv1.AdmissionReview{Request: q})
			if err != nil {
				text = object // no JSON, so no review
			}
			for _, way := range []string{"/mutate", "/validate"} {
				answered(t, h, way, text, object)
			}
		}
	})
}

func answered(t *testing.T, h http.Handler, way string, text, object []byte) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, way, strings.NewReader(string(text))))
	if w.Code == http.StatusBadRequest || w.Code == http.StatusServiceUnavailable { // 503: a migration
		return
	}
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &out); w.Code != http.StatusOK || err != nil || out.Response == nil {
		t.Fatalf("%s: %d %s", way, w.Code, w.Body)
	}
	if out.Response.Patch == nil {
		return
	}
	patch, err := jsonpatch.DecodePatch(out.Response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patch.Apply(object)
	if err != nil {
		t.Skip() // an API server sends only complete objects
	}
	var was, is corev1.Pod
	if json.Unmarshal(object, &was) != nil || json.Unmarshal(patched, &is) != nil {
		return
	}
	for i, c := range is.Spec.Containers {
		for j, m := range c.VolumeMounts {
			old := i < len(was.Spec.Containers) && j < len(was.Spec.Containers[i].VolumeMounts)
			if !old && strings.HasPrefix(m.Name, "stargate-") && path.Dir(m.MountPath) != "/var/run/stargate" {
				t.Errorf("%s is mounted at %q", m.Name, m.MountPath)
			}
		}
	}
}
