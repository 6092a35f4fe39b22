// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"stargate/csi-driver/internal/kubevirt/annotation"
)

// crowded is an API server with a namespace of many VMs, each with a large annotation. It serves
// lists in pages, as an API server does, and counts the lists that it serves at the same time.
type crowded struct {
	machines, sharers int
	text              string
	holds             chan struct{} // a list waits until it is closed; nil: no list waits

	pages, now, most atomic.Int64
}

func (c *crowded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.pages.Add(1)
	defer c.now.Add(-1)
	for now := c.now.Add(1); ; {
		if most := c.most.Load(); now <= most || c.most.CompareAndSwap(most, now) {
			break
		}
	}
	if c.holds != nil {
		select {
		case <-c.holds:
		case <-r.Context().Done():
			return
		}
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > 500 {
		http.Error(w, "a list without a limit", http.StatusBadRequest)
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	to, next := from+limit, strconv.Itoa(from+limit)
	if to >= c.machines {
		to, next = c.machines, ""
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"kind":"VirtualMachineInstanceList","apiVersion":"kubevirt.io/v1","items":[`)
	for i := from; i < to; i++ {
		volumes := "other"
		if i >= c.machines-c.sharers {
			volumes = "data"
		}
		if i > from {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, `{"metadata":{"name":"vm%d","annotations":{"text":%q,"%s/volumes":%q}}}`, i, c.text, driver, volumes)
	}
	fmt.Fprintf(w, `],"metadata":{"continue":%q}}`, next)
}

func (c *crowded) cluster(t *testing.T) *Cluster {
	t.Helper()
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	cluster, err := Connect(&rest.Config{Host: s.URL}, driver)
	if err != nil {
		t.Fatal(err)
	}
	return New(usual().config, cluster).cluster
}

var wantsData = []annotation.Claim{{Name: "data"}}

// The webhook reads a list of any length in pages, with little memory.
func TestLongList(t *testing.T) {
	const machines, text = 1000, 64 << 10
	c := &crowded{machines: machines, sharers: 2, text: strings.Repeat("x", text)}
	cluster := c.cluster(t)
	done := make(chan struct{})
	var most uint64
	go func() {
		defer close(done)
		for range 200 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			time.Sleep(5 * time.Millisecond)
		}
	}()
	all, err := cluster.anew().sharers(context.Background(), "ns", wantsData)
	if err != nil || len(all) != 2 || all[0].name != "vm998" || all[1].name != "vm999" {
		t.Errorf("%+v, %v", all, err)
	}
	<-done
	if pages := c.pages.Load(); pages != machines/pageSize {
		t.Errorf("%d pages", pages)
	}
	if most > machines*text/2 {
		t.Errorf("%d bytes of memory for a list of %d bytes", most, machines*text)
	}
}

// A few reviews may list at the same time. Another review waits, and reports in time that it was
// not made.
func TestManyLists(t *testing.T) {
	c := &crowded{machines: 2 * pageSize, sharers: 1, holds: make(chan struct{})}
	cluster := c.cluster(t)
	release := sync.OnceFunc(func() { close(c.holds) })
	t.Cleanup(release) // before the server closes
	const reviews = 5 * mostLists
	answers := make(chan error)
	for range reviews {
		go func() {
			all, err := cluster.anew().sharers(context.Background(), "ns", wantsData)
			if err == nil && len(all) != 1 {
				err = fmt.Errorf("%d VMs", len(all))
			}
			answers <- err
		}()
	}
	for c.now.Load() < mostLists {
		time.Sleep(time.Millisecond)
	}
	within, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := cluster.anew().sharers(within, "ns", wantsData); err == nil || !strings.Contains(err.Error(), "try again") || !strings.Contains(err.Error(), "too many reviews") {
		t.Errorf("a review that waits for too long: %v", err)
	}
	release()
	for range reviews {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if most := c.most.Load(); most != mostLists {
		t.Errorf("%d lists ran at the same time", most)
	}
}

// The webhook does not collect more VMs than can share a writable volume. Any number of VMs may
// read a volume.
func TestManySharers(t *testing.T) {
	for most, refused := range map[int]bool{mostSharers: false, mostSharers + 1: true} {
		c := &crowded{machines: most + pageSize, sharers: most}
		all, err := c.cluster(t).anew().sharers(context.Background(), "ns", wantsData)
		if (err != nil) != refused || !refused && len(all) != most || refused && !strings.Contains(err.Error(), "delete some") {
			t.Errorf("%d VMs: %d, %v", most, len(all), err)
		}
	}
	c := &crowded{machines: 2 * mostSharers, sharers: 2 * mostSharers}
	if all, err := c.cluster(t).anew().sharers(context.Background(), "ns", []annotation.Claim{{Name: "data", ReadOnly: true}, {Name: "own"}}); err != nil || len(all) != 0 {
		t.Errorf("VMs that only read a volume: got %d, %v", len(all), err)
	}
}

// A review keeps only the names of the shared claims of another VM.
func TestSharersAreSmall(t *testing.T) {
	const machines, long = 50, 250 << 10
	text := fmt.Sprintf(`{"metadata":{"name":"vm","annotations":{%q:%q}},"spec":{"domain":{"firmware":{"uuid":%q}}}}`,
		driver+"/volumes", strings.Repeat(" ", 2000)+"data,other", strings.Repeat("u", long))
	var all []sharer
	held := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	for range machines {
		var l listed
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		all = append(all, l.sharer(l.shares(driver, map[string]bool{"data": true})))
	}
	if after := held(); after > before+machines*2048 {
		t.Errorf("%d bytes for each VM", (after-before)/machines)
	}
	if len(all[0].claims) != 1 || all[0].claims[0].Name != "data" {
		t.Errorf("%+v", all[0].claims)
	}
}

// A review may name any text as namespace. The webhook requests no path outside the namespaces.
func TestNamespaces(t *testing.T) {
	c := &crowded{}
	for _, namespace := range []string{"", "..", "../../secrets", "a/b", "%2e%2e"} {
		if _, err := c.cluster(t).anew().sharers(context.Background(), namespace, wantsData); err == nil || !strings.Contains(err.Error(), "no namespace") {
			t.Errorf("%q: %v", namespace, err)
		}
	}
	if n := c.pages.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestPages(t *testing.T) {
	type named struct {
		Name string `json:"name"`
	}
	for text, want := range map[string]string{
		`{"kind":"L","items":[{"name":"a"},{"name":"b"}],"metadata":{"continue":"m","remainingItemCount":1}}`: "a b m",
		`{"metadata":{},"items":null,"more":[{}]}`:                                                            "", `{"items":[]}`: "", `{}`: "",
		`{"items":[{"name":"a"}`: "error", `{"items":{"name":"a"}}`: "error", `[]`: "error", ``: "error", `{"items":[{"name":1}]}`: "error",
		`{"metadata":"m"}`: "error", `{"items":[{"name":"a"}]`: "error",
	} {
		var all []string
		next, err := page(strings.NewReader(text), func(n *named) error { all = append(all, n.Name); return nil })
		got := strings.TrimSpace(strings.Join(append(all, next), " "))
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	asked := []string{}
	get := func(_ context.Context, of, _ string, query url.Values) (io.ReadCloser, error) {
		asked = append(asked, of+" "+query.Encode())
		next, _ := json.Marshal(map[string]any{"metadata": map[string]any{"continue": []string{"m&", ""}[len(asked)-1]}})
		return io.NopCloser(strings.NewReader(string(next))), nil
	}
	err := each(context.Background(), get, "/x", whole, url.Values{"labelSelector": {"a=b"}}, func(*named) error { return nil })
	want := []string{fmt.Sprintf("/x labelSelector=a%%3Db&limit=%d", pageSize), fmt.Sprintf("/x continue=m%%26&labelSelector=a%%3Db&limit=%d", pageSize)}
	if err != nil || !slices.Equal(asked, want) {
		t.Errorf("%q, %v", asked, err)
	}
}

// Users decide how large claims and VMs are. The webhook reads few of them at the same time, and
// keeps few fields of each.
func TestLargeObjects(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var now, most, served atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/ns/persistentvolumeclaims/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":%q,"namespace":"ns","annotations":{"a":%q},"labels":{"a":"b"},
			"finalizers":["a/b","a/c"]},"spec":{"volumeName":"v","storageClassName":"c","volumeMode":"Block","accessModes":["ReadOnlyMany","ReadWriteMany"],
			"resources":{"requests":{"storage":"1Gi","x/y":"1"}}},"status":{"capacity":{"storage":"2Gi"}}}`, r.PathValue("name"), long)
	})
	mux.HandleFunc("GET /apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"metadata":{"name":%q,"uid":"u","annotations":{%q:%q}},"spec":{"volumes":[{"name":%q}],"domain":{"firmware":{"uuid":%q}}}}`,
			r.PathValue("name"), driver+"/volumes", long, long, board)
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer now.Add(-1)
		for is := now.Add(1); ; {
			if m := most.Load(); is <= m || most.CompareAndSwap(m, is) {
				break
			}
		}
		served.Add(1)
		time.Sleep(5 * time.Millisecond)
		mux.ServeHTTP(w, r)
	}))
	defer s.Close()
	cluster, err := Connect(&rest.Config{Host: s.URL}, driver)
	if err != nil {
		t.Fatal(err)
	}
	cluster = New(usual().config, cluster).cluster
	const reviews = 3 * mostObjects
	answers := make(chan error)
	for i := range reviews {
		go func() {
			one := cluster.anew()
			p, err := one.claim(context.Background(), "ns", fmt.Sprint("c", i))
			if err == nil && (len(p.Spec.Resources.Requests) != 1 || p.Name != fmt.Sprint("c", i) ||
				p.Spec.VolumeName != "v" || *p.Spec.StorageClassName != "c" || *p.Spec.VolumeMode != "Block" || p.Spec.AccessModes[0] != "ReadOnlyMany" ||
				p.Status.Capacity.Storage().Value() != 2<<30) {
				err = fmt.Errorf("%+v", p)
			}
			if err != nil {
				answers <- err
				return
			}
			m, err := one.machine(context.Background(), "ns", "vm")
			if err == nil && (m.Name != "vm" || m.UID != "u" || m.uuid() != board || len(m.Annotations) != 1 || len(m.Annotations[driver+"/volumes"]) > 0 || len(m.Spec.Volumes) > 0) {
				err = fmt.Errorf("%+v", m)
			}
			answers <- err
		}()
	}
	for range reviews {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > mostObjects || served.Load() != 2*reviews {
		t.Errorf("%d of %d objects were read at the same time", most.Load(), served.Load())
	}
	for _, name := range []string{"", "..", "a/b", "../../../../api/v1/secrets"} {
		if _, err := cluster.anew().machine(context.Background(), "ns", name); err == nil || !strings.Contains(err.Error(), "is no name") {
			t.Errorf("VM %q: %v", name, err)
		}
	}
	if m, err := cluster.anew().machine(context.Background(), "other", "vm"); err == nil {
		if m != nil {
			t.Errorf("a VM that is missing: %+v", m)
		}
	}
}
