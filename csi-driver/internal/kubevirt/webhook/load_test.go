// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// latency is the time that a busy API server takes to answer.
const latency = 40 * time.Millisecond

// apiServer answers the queries of a launcher's review. It has VM vm, its claims a0, a1 ..., their
// existing volumes, and a later VM that has one of these claims. It counts the queries.
func apiServer(t *testing.T, mode corev1.PersistentVolumeAccessMode, asked *atomic.Int64) *httptest.Server {
	t.Helper()
	say := func(w http.ResponseWriter, what any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(what); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/ns/pods", func(w http.ResponseWriter, _ *http.Request) {
		say(w, &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}})
	})
	mux.HandleFunc("GET /api/v1/namespaces/ns/persistentvolumeclaims/{name}", func(w http.ResponseWriter, r *http.Request) {
		p := claimOf(r.PathValue("name"), "pv-"+r.PathValue("name"), "stargate", mode)
		p.TypeMeta = metav1.TypeMeta{Kind: "PersistentVolumeClaim", APIVersion: "v1"}
		say(w, p)
	})
	mux.HandleFunc("GET /api/v1/persistentvolumes/{name}", func(w http.ResponseWriter, r *http.Request) {
		v := volumeOn(r.PathValue("name"), "n1", mode)
		v.TypeMeta = metav1.TypeMeta{Kind: "PersistentVolume", APIVersion: "v1"}
		v.Spec.CSI.VolumeAttributes = map[string]string{"memory": "1073741824"}
		say(w, v)
	})
	vm := object("VirtualMachineInstance", "ns", "vm", map[string]any{"spec": map[string]any{"domain": map[string]any{"firmware": map[string]any{"uuid": board}}}})
	later := object("VirtualMachineInstance", "ns", "later", map[string]any{"metadata": map[string]any{"creationTimestamp": "2026-01-01T00:00:00Z",
		"annotations": map[string]any{driver + "/volumes": "a0"}}})
	mux.HandleFunc("GET /apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances/vm", func(w http.ResponseWriter, _ *http.Request) { say(w, vm.Object) })
	mux.HandleFunc("GET /apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances", func(w http.ResponseWriter, _ *http.Request) {
		say(w, map[string]any{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceList", "metadata": map[string]any{}, "items": []any{vm.Object, later.Object}})
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		time.Sleep(latency)
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// client-go's default client delays queries above a rate. In this test, the webhook reviews many
// pods at the same time, each with the largest number of claims. This happens after a node's boot,
// when all of its VMs start together.
func TestManyLaunchers(t *testing.T) {
	const most, machines = 16, 50
	const long = 60 * time.Second // a busy machine takes a while; an idle one stays within reviewLimit
	for _, mode := range []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadWriteOnce} {
		var asked atomic.Int64
		s := apiServer(t, mode, &asked)
		cluster, err := Connect(&rest.Config{Host: s.URL}, driver)
		if err != nil {
			t.Fatal(err)
		}
		w := usual()
		w.config.ZoneOfFiles = true
		r := New(w.config, cluster)
		names := make([]string, most)
		for i := range names {
			names[i] = fmt.Sprint("a", i)
		}
		pod, yes := &corev1.Pod{}, true
		if err := json.Unmarshal(launcher(sidecar("img:1")), pod); err != nil {
			t.Fatal(err)
		}
		pod.Annotations[driver+"/volumes"] = strings.Join(names, ",")
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "VirtualMachineInstance", Name: "vm", Controller: &yes}}
		text, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		review := func() *admissionv1.AdmissionResponse {
			ctx, cancel := context.WithTimeout(context.Background(), long)
			defer cancel()
			return r.answer(ctx, request("pods", admissionv1.Create, text), r.Mutate)
		}
		if res := review(); !res.Allowed {
			t.Fatalf("%s: refused: %s", mode, res.Result.Message)
		}
		// The queries are for each claim and its volume, the VM, all VMs, and their pods.
		if n := asked.Load(); n > 2*most+3 {
			t.Errorf("%s: a review with %d claims sends %d requests", mode, most, n)
		}
		began, answers := time.Now(), make(chan *admissionv1.AdmissionResponse)
		for range machines {
			go func() { answers <- review() }()
		}
		for range machines {
			if res := <-answers; !res.Allowed {
				t.Errorf("%s: one of many reviews at the same time is refused: %s", mode, res.Result.Message)
			}
		}
		t.Logf("%s: %d reviews took %v", mode, machines, time.Since(began))
	}
}

// The webhook answers before the API server's timeout.
func TestLimit(t *testing.T) {
	for query, want := range map[string]time.Duration{
		"timeout=10s": reviewLimit, "timeout=2s": 1600 * time.Millisecond, "timeout=30s": reviewLimit, "": reviewLimit, "timeout=soon": reviewLimit, "timeout=-1s": reviewLimit,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if is := limit(values); is != want {
			t.Errorf("%q: %v", query, is)
		}
	}
}

// The webhook returns different status codes for an object that it did not review and for an
// invalid object.
func TestUnanswered(t *testing.T) {
	var asked atomic.Int64
	s := apiServer(t, corev1.ReadWriteMany, &asked)
	cluster, err := Connect(&rest.Config{Host: s.URL}, driver)
	if err != nil {
		t.Fatal(err)
	}
	r := New(usual().config, cluster)
	ended, end := context.WithCancel(context.Background())
	end()
	pod := bytes.Replace(launcher(sidecar("img:1")), []byte(`"annotations"`), []byte(`"ownerReferences":[{"apiVersion":"kubevirt.io/v1","kind":"VirtualMachineInstance","name":"vm","uid":"u","controller":true}],"annotations"`), 1)
	for _, c := range []struct {
		what string
		ctx  context.Context
		q    *admissionv1.AdmissionRequest
		by   review
		code int32
	}{
		{"an API server that does not answer in time", ended, request("pods", admissionv1.Create, pod), r.Mutate, 500},
		{"one that cannot", context.Background(), request("virtualmachineinstances", admissionv1.Create, machineWith("data", map[string]any{"evictionStrategy": "LiveMigrate"})), r.Mutate, 500},
		{"a VM that cannot be", context.Background(), request("virtualmachineinstances", admissionv1.Create, machineWith("Data", nil)), r.Validate, 422},
		{"a pod without a hook", context.Background(), request("pods", admissionv1.Create, launcher()), r.Mutate, 422},
	} {
		res := r.answer(c.ctx, c.q, c.by)
		if res.Allowed || res.Result.Code != c.code || strings.Contains(res.Result.Message, "try again") != (c.code == 500) {
			t.Errorf("%s: %+v", c.what, res.Result)
		}
	}
}
