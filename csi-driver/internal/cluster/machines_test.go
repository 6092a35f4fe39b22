// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	k8stesting "k8s.io/client-go/testing"
)

// A VM's pod gets the memory of the claims that it names. No other pod gets memory.
func TestMachines(t *testing.T) {
	pod := func(name, uid, volumes string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("u-" + uid)}}
		if volumes != "" {
			p.Annotations = map[string]string{"stargate.csi.dev/volumes": volumes}
		}
		return p
	}
	of := func(volume, namespace, claim, uid string) *corev1.PersistentVolume {
		v := claimed(volume, driver, claim)
		v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.UID = namespace, types.UID(uid)
		return v
	}
	free := claimed("pv-free", driver, "")
	free.Spec.ClaimRef = nil
	client := fake.NewClientset(pod("launcher", "1", "data,models:ro,none,promised"), pod("other", "2", ""), pod("wrong", "3", "Data"), free,
		of("pv-data", "ns", "data", "c-1"), of("pv-models", "ns", "models", "c-2"), of("pv-disk", "ns", "disk", "c-3"), of("pv-there", "there", "data", "c-4"),
		of("pv-promised", "ns", "promised", ""))
	is := Machines(client, driver)
	for _, c := range []struct {
		namespace, name, uid, pv string
		is                       bool
	}{
		{"ns", "launcher", "u-1", "pv-data", true},
		{"ns", "launcher", "u-1", "pv-models", true},
		{"ns", "launcher", "u-1", "pv-disk", false},
		{"ns", "launcher", "u-1", "pv-there", false},
		{"ns", "launcher", "u-1", "pv-promised", false}, // this PersistentVolume is not bound to the claim yet
		{"ns", "launcher", "u-1", "pv-free", false},
		{"ns", "launcher", "u-1", "pv-nowhere", false},
		{"ns", "launcher", "u-9", "pv-data", false},
		{"there", "launcher", "u-1", "pv-there", false},
		{"ns", "other", "u-2", "pv-data", false},
		{"ns", "wrong", "u-3", "pv-data", false},
		{"ns", "launcher", "u-1", "", false},
	} {
		got, err := is(context.Background(), c.namespace, c.name, c.uid, c.pv)
		if got != c.is || err != nil {
			t.Errorf("%s/%s %s, %s: %v, %v", c.namespace, c.name, c.uid, c.pv, got, err)
		}
	}
	for _, kind := range []string{"pods", "persistentvolumes"} {
		silent := fake.NewClientset(pod("launcher", "1", "data"), of("pv-data", "ns", "data", "c-1"))
		silent.PrependReactor("get", kind, func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
		if got, err := Machines(silent, driver)(context.Background(), "ns", "launcher", "u-1", "pv-data"); got || err == nil {
			t.Errorf("no answer about %s: %v, %v", kind, got, err)
		}
	}
}

// A VM's pod with sixteen volumes needs two requests for each volume. No request waits for the
// client's default limit.
func TestMachinesAreAskedQuickly(t *testing.T) {
	var names []string
	for i := range 16 {
		names = append(names, fmt.Sprintf("c%d", i))
	}
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		var is any = &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "launcher", UID: "u-1", Annotations: map[string]string{driver + "/volumes": strings.Join(names, ",")}}}
		if name, ok := strings.CutPrefix(r.URL.Path, "/api/v1/persistentvolumes/pv-"); ok {
			v := claimed("pv-"+name, driver, name)
			v.TypeMeta, v.Spec.ClaimRef.UID = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, "c-1"
			is = v
		}
		_ = json.NewEncoder(w).Encode(is)
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(limited(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	is, began := Machines(client, driver), time.Now()
	for _, name := range names {
		if got, err := is(context.Background(), "ns", "launcher", "u-1", "pv-"+name); !got || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if took := time.Since(began); asked.Load() > 32 || took > 2*time.Second {
		t.Errorf("%d requests in %s", asked.Load(), took)
	}
}

// A node limits the rate of its requests, so that an API server can serve all nodes at the same
// time.
func TestNodeRequestRate(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}})
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(limited(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var g sync.WaitGroup
	for range 8 {
		g.Add(1)
		go func() {
			defer g.Done()
			for ctx.Err() == nil {
				_, _ = client.CoreV1().Pods("ns").Get(ctx, "p", metav1.GetOptions{})
			}
		}()
	}
	g.Wait()
	if n := asked.Load(); n < 20 || n > 160 {
		t.Errorf("%d requests within a second", n)
	}
}
