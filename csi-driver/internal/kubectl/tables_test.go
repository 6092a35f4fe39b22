// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"stargate/csi-driver/internal/nodemeta"
)

func lines(t *testing.T, print func(io.Writer) error) []string {
	t.Helper()
	var out bytes.Buffer
	if err := print(&out); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(out.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	return rows
}

func TestZones(t *testing.T) {
	w := newWorld()
	w.node.Annotations = map[string]string{nodemeta.Module(testDriver): "prebuilt"}
	f := w.facts(t)
	got := lines(t, func(out io.Writer) error { return PrintZones(out, f.Zones()) })
	want := []string{"NODE KIND SIZE LARGEST VOLUMES MODULE STATE", "n1 file 4Gi 2Gi 1 prebuilt Ready"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	w.keeper = nil
	if z := w.facts(t).Zones(); len(z) != 1 || !strings.Contains(z[0].State, "no keeper") {
		t.Errorf("%v", z)
	}
}

func TestVolumes(t *testing.T) {
	f := newWorld().facts(t)
	want := []string{"NAMESPACE CLAIM NODE SIZE STATUS VOLUME PODS", "default data n1 1Gi Bound pvc-1 web"}
	for _, namespace := range []string{"default", ""} {
		if got := lines(t, func(out io.Writer) error { return PrintVolumes(out, f.VolumesOf(namespace)) }); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
	if got := f.VolumesOf("other"); got == nil || len(got) > 0 {
		t.Errorf("VolumesOf returns %v, but JSON needs an empty list", got)
	}
}

// Other programs write the text of Events, and a terminal would execute control characters in it.
func TestForeignText(t *testing.T) {
	var out bytes.Buffer
	if err := PrintFindings(&out, []Finding{{"Pod/a", "an \x1b[2J\u009b event\nwith lines", "x"}}); err != nil || strings.ContainsAny(out.String(), "\x1b\u009b") {
		t.Errorf("%v: %q", err, out.String())
	}
	if got := lines(t, func(out io.Writer) error { return PrintVolumes(out, []Volume{{Claim: "a\tb\nc"}}) }); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if got := lines(t, func(out io.Writer) error { return PrintFindings(out, nil) }); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

type ran struct {
	pod     string
	command []string
	err     error
}

func (r *ran) Run(_ context.Context, pod *corev1.Pod, container string, command []string, out, _ io.Writer) error {
	r.pod, r.command = pod.Name+"/"+container, command
	_, _ = fmt.Fprintln(out, "text")
	return r.err
}

func TestSystems(t *testing.T) {
	ctx := context.Background()
	f := newWorld().facts(t)
	r := &ran{}
	if err := f.Systems(ctx, r, "default", "data", SystemsOptions{JSON: true, Open: true}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(r.command, " "), "stargatectl systems --json --open /dev/shm/stargate/pvc-1.stargate"; got != want || r.pod != "stargate-csi-x/driver" {
		t.Errorf("%s: %s", r.pod, got)
	}
	r.err = errors.New("exit status 4")
	if err := f.Systems(ctx, r, "default", "data", SystemsOptions{}, io.Discard, io.Discard); !errors.Is(err, r.err) {
		t.Errorf("%v", err)
	}
	r = &ran{}
	if err := f.Systems(ctx, r, "default", "other", SystemsOptions{}, io.Discard, io.Discard); err == nil || r.command != nil {
		t.Errorf("%v: %v", err, r.command)
	}
	w := newWorld().unbound()
	if err := w.facts(t).Systems(ctx, r, "default", "data", SystemsOptions{}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "doctor pvc/data") {
		t.Errorf("%v", err)
	}
	w = newWorld()
	w.serves = nil
	if err := w.facts(t).Systems(ctx, r, "default", "data", SystemsOptions{}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "n1") {
		t.Errorf("%v", err)
	}
}

func TestFence(t *testing.T) {
	ctx := context.Background()
	w := newWorld()
	fence := func(system string, force bool) (string, error) {
		r := &ran{}
		err := w.facts(t).Fence(ctx, r, "default", "data", system, force, io.Discard, io.Discard)
		return strings.Join(r.command, " "), err
	}
	if got, err := fence("vm1", true); err != nil || got != "stargatectl systems /dev/shm/stargate/pvc-1.stargate fence vm1 --force" {
		t.Errorf("%v: %s", err, got)
	}
	for _, bad := range []string{"", "--force", "-x"} {
		if got, err := fence(bad, false); err == nil || got != "" {
			t.Errorf("%q: %s", bad, got)
		}
	}
	// Only the mount can remove a VM's memory.
	args := w.serves.Spec.Containers[0].Args
	args[1], args[2] = "--zone-kind=dax", "--zone=vg"
	got, err := fence("3", false)
	if err != nil || !strings.HasPrefix(got, "stargatectl systems /var/lib/kubelet/plugins/kubernetes.io/csi/stargate.csi.dev/") || !strings.HasSuffix(got, "/globalmount fence 3") {
		t.Errorf("%v: %s", err, got)
	}
	w.pod = nil
	if got, err := fence("3", false); err != nil || got != "stargatectl systems /dev/vg/pvc-1 fence 3" {
		t.Errorf("%v: %s", err, got)
	}
	args[1] = "--zone-kind=none"
	if got, err := fence("3", false); err == nil || got != "" {
		t.Errorf("%s", got)
	}
}

// scrapes answers with one text after the other.
type scrapes struct{ texts []string }

func (s *scrapes) Scrape(context.Context, *corev1.Pod) (io.ReadCloser, error) {
	if len(s.texts) == 0 {
		return nil, errors.New("refused")
	}
	text := s.texts[0]
	s.texts = s.texts[1:]
	return io.NopCloser(strings.NewReader(text)), nil
}

func TestPortOfMetrics(t *testing.T) {
	pod := newWorld().serves
	if _, err := portOf(pod); err == nil || !strings.Contains(err.Error(), "metrics.port") {
		t.Errorf("%v", err)
	}
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "other", ContainerPort: 1}, {Name: metricsPort, ContainerPort: 9810}}
	if port, err := portOf(pod); err != nil || port != 9810 {
		t.Errorf("%d, %v", port, err)
	}
}

func TestTop(t *testing.T) {
	f := newWorld().facts(t)
	metrics := func(reads, writes int) string {
		return fmt.Sprintf("# TYPE stargate_mount_reads_total counter\nstargate_mount_reads_total{volume=\"pvc-1\"} %d\n"+
			"# TYPE stargate_mount_writes_total counter\nstargate_mount_writes_total{volume=\"pvc-1\"} %d\n"+
			"# TYPE stargate_volume_systems gauge\nstargate_volume_systems{volume=\"pvc-1\"} 3\n"+
			"# TYPE stargate_volume_used_bytes gauge\nstargate_volume_used_bytes{volume=\"pvc-1\"} 1048576\n", reads, writes)
	}
	uses, err := f.Top(context.Background(), &scrapes{[]string{metrics(100, 50), metrics(1100, 10)}}, 100*time.Millisecond, "default")
	if err != nil || len(uses) != 1 {
		t.Fatalf("%v: %v", uses, err)
	}
	u := uses[0]
	// 1,000 reads in a tenth of a second or a little more; a later mount counts writes from 0.
	if u.Reads < 1000 || u.Reads > 10000 || u.Writes <= 0 || u.Writes > 100 || u.Systems != 3 || u.Used != mebi || !u.Mounted {
		t.Errorf("%+v", u)
	}
	if rows := lines(t, func(out io.Writer) error { return PrintUses(out, uses) }); len(rows) != 2 || !strings.HasPrefix(rows[1], "default data n1 3 1Mi ") {
		t.Errorf("%q", rows)
	}
	var text bytes.Buffer
	if err := PrintJSON(&text, uses); err != nil || !json.Valid(text.Bytes()) {
		t.Errorf("%v", err)
	}
	// The node has not mounted a volume that only VMs use.
	quiet := "# TYPE stargate_volume_systems gauge\nstargate_volume_systems{volume=\"pvc-1\"} 2\n"
	uses, err = f.Top(context.Background(), &scrapes{[]string{quiet, quiet}}, time.Millisecond, "")
	if err != nil || len(uses) != 1 || uses[0].Mounted {
		t.Errorf("%v: %v", uses, err)
	}
	if rows := lines(t, func(out io.Writer) error { return PrintUses(out, uses) }); !strings.HasSuffix(rows[1], "2 0 - - - - - -") {
		t.Errorf("%q", rows)
	}
	if _, err := f.Top(context.Background(), &scrapes{}, time.Millisecond, ""); err == nil || !strings.Contains(err.Error(), "node n1") {
		t.Errorf("%v", err)
	}
	if _, err := f.Top(context.Background(), &scrapes{[]string{"no {{ metrics", ""}}, time.Millisecond, ""); err == nil {
		t.Error("nonsense counts as metrics")
	}
}
