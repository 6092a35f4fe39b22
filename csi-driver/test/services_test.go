// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"stargate/csi-driver/internal/app"
	"stargate/csi-driver/internal/pool"
)

var background = context.Background()

func TestCreateRefusals(t *testing.T) {
	n := newNode(t, 256*mib, "512m")
	n.start()
	n.create("there", 32*mib)
	for _, c := range []struct {
		what  string
		edit  func(r *csi.CreateVolumeRequest)
		code  codes.Code
		words []string
	}{
		{"no name", func(r *csi.CreateVolumeRequest) { r.Name = "" }, codes.InvalidArgument, nil},
		{"long name", func(r *csi.CreateVolumeRequest) { r.Name = strings.Repeat("n", 129) }, codes.InvalidArgument, []string{"128"}},
		{"block", func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0].AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		}, codes.InvalidArgument, []string{"Block"}},
		{"mode", func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0].AccessMode.Mode = csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER
		}, codes.InvalidArgument, []string{"within its node"}},
		{"fs", func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].GetMount().FsType = "ext4" }, codes.InvalidArgument, []string{"ext4"}},
		{"option", func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0].GetMount().MountFlags = []string{"noatime", "data=journal"}
		}, codes.InvalidArgument, []string{"data=journal"}},
		{"parameter", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"replicas": "3"} }, codes.InvalidArgument, []string{"replicas", "alignment"}},
		{"alignment", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"alignment": "4Ki"} }, codes.InvalidArgument, []string{"4Ki", "1Gi"}},
		{"splice", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"hostMode": "splice"} }, codes.InvalidArgument, []string{"--allow-host-splice"}},
		{"root", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"rootMode": "rwx"} }, codes.InvalidArgument, nil},
		{"max", func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"maxSize": "16Mi"} }, codes.InvalidArgument, []string{"maxSize"}},
		{"negative", func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = -1 }, codes.InvalidArgument, nil},
		{"negative limit", func(r *csi.CreateVolumeRequest) { r.CapacityRange.LimitBytes = -1 }, codes.InvalidArgument, nil},
		{"limit below", func(r *csi.CreateVolumeRequest) { r.CapacityRange.LimitBytes = 1 }, codes.InvalidArgument, nil},
		{"tiny limit", func(r *csi.CreateVolumeRequest) {
			r.CapacityRange = &csi.CapacityRange{LimitBytes: mib}
		}, codes.OutOfRange, []string{"16 MiB"}},
		{"huge", func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 1 << 60 }, codes.OutOfRange, nil},
		{"no room", func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = gib }, codes.ResourceExhausted, []string{fmt.Sprint(224 * mib)}},
		{"elsewhere", func(r *csi.CreateVolumeRequest) {
			r.AccessibilityRequirements = &csi.TopologyRequirement{Requisite: []*csi.Topology{
				{Segments: map[string]string{n.config.Driver.TopologyKey(): "n2"}},
			}}
		}, codes.ResourceExhausted, []string{"n1"}},
		{"source", func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
				Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: "none"},
			}}
		}, codes.NotFound, []string{"none"}},
		{"no source", func(r *csi.CreateVolumeRequest) {
			r.VolumeContentSource = &csi.VolumeContentSource{}
		}, codes.InvalidArgument, []string{"neither"}},
		{"other size", func(r *csi.CreateVolumeRequest) { r.Name, r.CapacityRange.RequiredBytes = "there", 64*mib }, codes.AlreadyExists, []string{fmt.Sprint(32 * mib)}},
		{"other growth", func(r *csi.CreateVolumeRequest) {
			r.Name, r.Parameters = "there", map[string]string{"maxSize": "8Ti"}
		}, codes.AlreadyExists, nil},
		{"other label", func(r *csi.CreateVolumeRequest) { r.Name, r.Parameters = "there", map[string]string{"label": "l"} }, codes.AlreadyExists, []string{"label"}},
		{"other lease", func(r *csi.CreateVolumeRequest) { r.Name, r.Parameters = "there", map[string]string{"lease": "30"} }, codes.AlreadyExists, []string{"lease"}},
		{"other reserve", func(r *csi.CreateVolumeRequest) { r.Name, r.Parameters = "there", map[string]string{"reserve": "32Mi"} }, codes.AlreadyExists, nil},
	} {
		r := createRequest("new", 32*mib)
		r.VolumeCapabilities = []*csi.VolumeCapability{capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)}
		c.edit(r)
		_, err := n.CreateVolume(background, r)
		wants(t, c.what, err, c.code, c.words...)
	}
	if files := n.left(); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

// Different names that LVM does not accept lead to different volumes. A name that looks like a
// derived name also leads to a separate volume.
func TestNames(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.start()
	ids := map[string]bool{}
	for _, name := range []string{"pvc-1", "a b", "a/b", "../../etc", "snapshot-1", strings.Repeat("n", 128), "größe", "x-1"} {
		v := n.create(name, 16*mib)
		if again := n.create(name, 16*mib); again.GetVolumeId() != v.GetVolumeId() {
			t.Errorf("%q is %q, and then %q", name, v.GetVolumeId(), again.GetVolumeId())
		}
		ids[pool.NameOf(v.GetVolumeId())] = true
		n.create(pool.NameOf(v.GetVolumeId()), 16*mib) // may lead to the same volume, or to another one
	}
	if !ids["pvc-1"] {
		t.Error("volume pvc-1 has another name in the zone")
	}
	for _, f := range n.left() {
		n.delete(strings.TrimSuffix(f, ".stargate"))
	}
	if len(ids) != 8 || len(n.left()) != 0 {
		t.Errorf("%d volumes, and left: %v", len(ids), n.left())
	}
}

// A name that contains this node leads to the same volume as the name without the node, which an
// older chart used. If the node's name is long, the complete name has more bytes than CSI allows.
func TestNamesOfNode(t *testing.T) {
	const uid = "0b5e55ed-0000-4000-8000-00000000beef"
	n := newNode(t, gib, "512m")
	n.config.Driver.NodeID = strings.Repeat("n", 63)
	n.start()
	v := n.create("pvc-stargate.csi.dev-"+uid, 16*mib)
	if name := pool.NameOf(v.GetVolumeId()); name != "pvc-stargate.csi.dev-"+uid {
		t.Errorf("the volume is %q", name)
	}
	name := "pvc-stargate.csi.dev--" + n.config.Driver.NodeID + "-" + uid
	if again := n.create(name, 16*mib); again.GetVolumeId() != v.GetVolumeId() {
		t.Errorf("the volume is %q, and with the node in its name %q", v.GetVolumeId(), again.GetVolumeId())
	}
	_, err := n.CreateVolume(background, createRequest(name+strings.Repeat("u", 128), 16*mib))
	wants(t, "a name that is too long without the node", err, codes.InvalidArgument)
}

func capacity(t testing.TB, n *node, align string) (largest, all int64) {
	t.Helper()
	res, err := n.GetCapacity(background, &csi.GetCapacityRequest{Parameters: map[string]string{"alignment": align}})
	if err != nil {
		t.Fatal(err)
	}
	return res.GetMaximumVolumeSize().GetValue(), res.GetAvailableCapacity()
}

// GetCapacity reports the largest free range, not the sum of free ranges. A volume of this size can
// be created.
func TestCapacity(t *testing.T) {
	n := newNode(t, 320*mib, "1g")
	n.start()
	for i := 0; i < 5; i++ {
		n.create(fmt.Sprintf("v%d", i), 64*mib)
	}
	if largest, all := capacity(t, n, "2Mi"); largest != 0 || all != 0 {
		t.Errorf("the zone is full, but %d and %d bytes are reported", largest, all)
	}
	for _, id := range []string{"v0", "v2", "v3"} {
		n.delete(id)
	}
	if largest, all := capacity(t, n, "2Mi"); largest != 128*mib || all != 192*mib {
		t.Errorf("largest %d of %d; should be 128 of 192 MiB", largest, all)
	}
	if largest, _ := capacity(t, n, "1Gi"); largest != 64*mib {
		t.Errorf("the largest volume at a multiple of 1 GiB has %d bytes; should be 64 MiB", largest)
	}
	_, err := n.CreateVolume(background, createRequest("big", 130*mib))
	wants(t, "a volume larger than the reported size", err, codes.ResourceExhausted, fmt.Sprint(128*mib))
	n.create("small", 64*mib) // gets the smaller gap
	n.create("big", 128*mib)
	res, err := n.GetCapacity(background, &csi.GetCapacityRequest{AccessibleTopology: &csi.Topology{
		Segments: map[string]string{n.config.Driver.TopologyKey(): "n2"},
	}})
	if err != nil || res.GetAvailableCapacity() != 0 || res.GetMaximumVolumeSize().GetValue() != 0 {
		t.Errorf("of another node: %v, %v", res, err)
	}
}

// Memory that another process has taken does not count as free.
func TestMemoryTaken(t *testing.T) {
	n := newNode(t, gib, "128m")
	n.start()
	if err := os.WriteFile(filepath.Join(n.zoneDir, "ballast"), make([]byte, 64*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	if largest, _ := capacity(t, n, "2Mi"); largest != 64*mib {
		t.Errorf("largest %d; should be 64 MiB", largest)
	}
	_, err := n.CreateVolume(background, createRequest("v", 66*mib))
	wants(t, "more than there is", err, codes.ResourceExhausted, fmt.Sprint(64*mib))
	n.create("v", 64*mib)
}

func TestExpansion(t *testing.T) {
	n := newNode(t, 256*mib, "512m")
	n.start()
	n.create("a", 32*mib)
	n.stage("a", rwx)
	n.publish("a", "p", rwx, false)
	expand := func(size int64) (*csi.ControllerExpandVolumeResponse, error) {
		return n.ControllerExpandVolume(background, &csi.ControllerExpandVolumeRequest{
			VolumeId: "a", CapacityRange: &csi.CapacityRange{RequiredBytes: size},
		})
	}
	if res, err := expand(64*mib - 1); err != nil || res.GetCapacityBytes() != 64*mib || res.GetNodeExpansionRequired() {
		t.Fatalf("%v, %v", res, err)
	}
	n.create("b", 32*mib) // the volume may lie behind volume a
	n.create("c", 16*mib)
	n.delete("b")
	_, err := expand(240 * mib)
	wants(t, "more than behind it", err, codes.OutOfRange, "largest possible size is")
	if res, err := expand(48 * mib); err != nil || res.GetCapacityBytes() != 64*mib {
		t.Errorf("it is larger already: %v, %v", res, err)
	}
	var d struct {
		Size int64
		Base string
	}
	text, err := os.ReadFile(filepath.Join(n.target("p"), ".stargate", "volume.json"))
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil || d.Size != 64*mib || d.Base == "" {
		t.Errorf("the description: %s, %v", text, err)
	}
	if st, err := os.Stat(filepath.Join(n.target("p"), ".stargate", "region")); err != nil || st.Size() != 64*mib {
		t.Errorf("the region: %v, %v", st, err)
	}
	_, err = n.ControllerExpandVolume(background, &csi.ControllerExpandVolumeRequest{VolumeId: "a", CapacityRange: &csi.CapacityRange{LimitBytes: 32 * mib}})
	wants(t, "shrinking", err, codes.OutOfRange, "shrink")
	_, err = n.ControllerExpandVolume(background, &csi.ControllerExpandVolumeRequest{VolumeId: "none", CapacityRange: &csi.CapacityRange{RequiredBytes: gib}})
	wants(t, "none", err, codes.NotFound)
}

// A pod and a VM in it can access the volume's bytes, read-only if requested.
func TestPublished(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.start()
	n.create("v", 32*mib)
	n.stage("v", rwx)
	n.publish("v", "w", rwx, false)
	n.publish("v", "r", rwx, true)
	n.publish("v", "x", rox, false)
	region := func(pod string) string { return filepath.Join(n.target(pod), ".stargate", "region") }
	st, err := os.Stat(region("w"))
	if err != nil || st.Size() != 32*mib || st.Mode().Perm() != 0o660 || st.Sys() == nil {
		t.Fatalf("region: %v, %v", st, err)
	}
	var us unix.Stat_t
	if err := unix.Stat(region("w"), &us); err != nil || us.Gid != 107 {
		t.Errorf("region's group: %d, %v", us.Gid, err)
	}
	put := exec.Command(filepath.Join(n.config.ToolsDir, "stargatectl"), "put", region("w"), "-", "/hello")
	put.Stdin = strings.NewReader("from one pod to another")
	if out, err := put.CombinedOutput(); err != nil {
		t.Fatalf("put: %v: %s", err, out)
	}
	out, err := exec.Command(filepath.Join(n.config.ToolsDir, "stargatectl"), "cat", region("r"), "/hello").CombinedOutput()
	if err != nil || string(out) != "from one pod to another" {
		t.Errorf("cat: %v: %s", err, out)
	}
	for _, pod := range []string{"r", "x"} {
		if f, err := os.OpenFile(region(pod), os.O_RDWR, 0); err == nil {
			f.Close()
			t.Errorf("%s may write", pod)
		}
	}
	if err := os.WriteFile(filepath.Join(n.target("w"), "stray"), nil, 0o600); err == nil {
		t.Error("a pod can write to the directory outside the volume")
	}
	_, err = n.NodePublishVolume(background, n.publishRequest("v", "w", rwx, true))
	wants(t, "a second publication with other attributes", err, codes.AlreadyExists)
	_, err = n.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: "v"})
	wants(t, "deleting what is mounted", err, codes.FailedPrecondition, n.kubelet)
	stats, err := n.NodeGetVolumeStats(background, &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: n.target("w")})
	if err != nil || len(stats.GetUsage()) != 2 || stats.GetUsage()[0].GetUsed() == 0 || stats.GetUsage()[1].GetUsed() != 2 {
		t.Errorf("stats: %v, %v", stats, err)
	}
	for _, pod := range []string{"w", "r", "x"} {
		n.unpublish("v", pod)
	}
	n.unstage("v")
	n.delete("v")
	if left := n.rest(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// uses starts a tool that uses a volume until leave is called.
func (n *node) uses(id string) (leave func()) {
	n.t.Helper()
	fifo := filepath.Join(n.dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		n.t.Fatal(err)
	}
	// The tool has joined the volume, and reads until the other end of the pipe is closed.
	cmd := exec.Command(filepath.Join(n.config.ToolsDir, "stargatectl"), "put", filepath.Join(n.zoneDir, id+".stargate"), fifo, "/f")
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	end, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		n.t.Fatal(err)
	}
	return func() {
		n.t.Helper()
		end.Close()
		if err := cmd.Wait(); err != nil {
			n.t.Fatal(err)
		}
	}
}

const (
	machineA = "aaaaaaaa-0000-4000-8000-000000000001"
	machineB = "bbbbbbbb-0000-4000-8000-000000000001"
)

// machine starts a process that uses a volume like a VM with the given UUID
// (kernel/tests/native/machine.c). tell sends a command to the process.
func (n *node) machine(id, uuid string) (tell func(line string)) {
	n.t.Helper()
	tell, _ = n.mortal(id, uuid)
	return tell
}

// mortal starts such a process. kill kills the process, which closes its files.
func (n *node) mortal(id, uuid string) (tell func(line string), kill func()) {
	n.t.Helper()
	program := filepath.Join(n.config.ToolsDir, "..", "tests", "machine")
	_, err := os.Stat(program)
	needs(n.t, err, "make build/tests/machine")
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { in.Close(); cmd.Wait() })
	kill = func() { cmd.Process.Kill(); cmd.Wait() }
	answers := bufio.NewReader(out)
	tell = func(line string) {
		n.t.Helper()
		fmt.Fprintln(in, line)
		if answer, err := answers.ReadString('\n'); err != nil || answer != "ok\n" {
			n.t.Fatalf("%s: %s, %v", line, answer, err)
		}
	}
	tell("join " + filepath.Join(n.zoneDir, id+".stargate") + " " + uuid + " 1")
	return tell, kill
}

// The driver refuses to delete a volume that a system has mounted. The error names the system.
func TestDeleteInUse(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.start()
	n.create("v", 32*mib)
	leave := n.uses("v")
	_, err := n.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: "v"})
	wants(t, "in use", err, codes.FailedPrecondition, "in use by")
	leave()
	n.delete("v")
}

// The driver does not unmount a path while a pod has files of it open.
func TestUnpublishInUse(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.start()
	n.create("v", 32*mib)
	n.stage("v", rwx)
	n.publish("v", "p", rwx, false)
	for path, call := range map[string]func() error{
		n.target("p"): func() error {
			_, err := n.NodeUnpublishVolume(background, &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: n.target("p")})
			return err
		},
		n.staging("v"): func() error {
			_, err := n.NodeUnstageVolume(background, &csi.NodeUnstageVolumeRequest{VolumeId: "v", StagingTargetPath: n.staging("v")})
			return err
		},
	} {
		open, err := os.Open(filepath.Join(path, ".stargate", "volume.json"))
		if err != nil {
			t.Fatal(err)
		}
		wants(t, path, call(), codes.Aborted, path)
		open.Close()
		if err := call(); err != nil {
			t.Error(err)
		}
	}
	if shown := n.shown(); len(shown) > 0 {
		t.Errorf("left: %v", shown)
	}
}

// A request may name any path in kubelet's folder. The driver does not unmount other programs'
// mounts at this path or below.
func TestUnpublishOfOthers(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.start()
	n.create("v", 32*mib)
	n.stage("v", rwx)
	pods := filepath.Join(n.kubelet, "pods")
	other, one := filepath.Join(pods, "other"), filepath.Join(pods, "one")
	if err := os.MkdirAll(other, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("other", other, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	r := n.publishRequest("v", "", rwx, false)
	r.TargetPath = one
	if _, err := n.NodePublishVolume(background, r); err != nil {
		t.Fatal(err)
	}
	before := n.shown()
	for _, path := range []string{pods, other} {
		if _, err := n.NodeUnpublishVolume(background, &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: path}); err == nil {
			t.Errorf("%s is said to be unpublished", path)
		}
		if _, err := n.NodeUnstageVolume(background, &csi.NodeUnstageVolumeRequest{VolumeId: "v", StagingTargetPath: path}); err != nil {
			t.Errorf("nothing is staged at %s: %v", path, err)
		}
	}
	if after := n.shown(); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("the mounts are %v, and were %v", after, before)
	}
	if _, err := n.NodeUnpublishVolume(background, &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: one}); err != nil {
		t.Error(err)
	}
}

func TestOnePod(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.start()
	n.create("v", 32*mib)
	n.stage("v", rwop)
	n.publish("v", "first", rwop, false)
	n.publish("v", "first", rwop, false)
	_, err := n.NodePublishVolume(background, n.publishRequest("v", "second", rwop, false))
	wants(t, "a second pod", err, codes.FailedPrecondition, "pod-first")
	n.unpublish("v", "first")
	n.publish("v", "second", rwop, false)
	_, err = n.NodePublishVolume(background, &csi.NodePublishVolumeRequest{
		VolumeId: "v", StagingTargetPath: n.staging("other"), TargetPath: n.target("third"), VolumeCapability: rwx,
	})
	wants(t, "not staged", err, codes.FailedPrecondition, "not staged")
}

// The driver refuses paths of requests that lead out of kubelet's folder.
func TestPaths(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.start()
	n.create("v", 32*mib)
	n.stage("v", rwx)
	outside := filepath.Join(n.dir, "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(n.kubelet, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		outside, "/etc", n.kubelet, n.kubelet + "/", n.kubelet + "/../outside/x", n.kubelet + "x/y",
		n.kubelet + "/link", n.kubelet + "/link/x", n.kubelet + "/link/x/y", "relative", n.kubelet + "/a b", n.kubelet + "/./x",
	} {
		r := n.publishRequest("v", "p", rwx, false)
		r.TargetPath = path
		_, err := n.NodePublishVolume(background, r)
		wants(t, "publish at "+path, err, codes.InvalidArgument)
		_, err = n.NodeStageVolume(background, &csi.NodeStageVolumeRequest{VolumeId: "v", StagingTargetPath: path, VolumeCapability: rwx})
		wants(t, "stage at "+path, err, codes.InvalidArgument)
		_, err = n.NodeUnpublishVolume(background, &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: path})
		wants(t, "unpublish at "+path, err, codes.InvalidArgument)
		_, err = n.NodeUnstageVolume(background, &csi.NodeUnstageVolumeRequest{VolumeId: "v", StagingTargetPath: path})
		wants(t, "unstage at "+path, err, codes.InvalidArgument)
		_, err = n.NodeGetVolumeStats(background, &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: path})
		wants(t, "stats at "+path, err, codes.NotFound)
	}
	if entries, _ := os.ReadDir(outside); len(entries) > 0 {
		t.Errorf("outside there is %v", entries)
	}
}

func TestInline(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.start()
	r := &csi.NodePublishVolumeRequest{
		VolumeId: "csi-" + strings.Repeat("0123456789abcdef", 4), TargetPath: n.target("p"), VolumeCapability: rwo,
		VolumeContext: map[string]string{"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": "p", "size": "20Mi", "label": "scratch"},
	}
	for range 3 {
		if _, err := n.NodePublishVolume(background, r); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := os.Stat(filepath.Join(n.target("p"), ".stargate", "region")); err != nil || st.Size() != 20*mib || len(n.left()) != 1 {
		t.Errorf("%v, %v, %v", st, err, n.left())
	}
	if _, err := n.NodeGetVolumeStats(background, &csi.NodeGetVolumeStatsRequest{VolumeId: r.VolumeId, VolumePath: r.TargetPath}); err != nil {
		t.Error(err)
	}
	n.unpublish(r.VolumeId, "p")
	n.unpublish(r.VolumeId, "p")
	if left := n.rest(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	r.VolumeContext["size"] = "2Gi"
	_, err := n.NodePublishVolume(background, r)
	wants(t, "more than there is", err, codes.ResourceExhausted)
	r.VolumeContext["size"] = "lots"
	_, err = n.NodePublishVolume(background, r)
	wants(t, "no size", err, codes.InvalidArgument, "lots")
}

// The scheduler may choose any node for pods with inline volumes. On a node without a zone, such
// pods cannot start, but they can end. If the zone cannot be read now, the driver does not report a
// volume in it as deleted.
func TestInlineWithoutZone(t *testing.T) {
	n := newNode(t, gib, "512m")
	broken := t.TempDir() // these tools fail: LVM, the device mapper, or the complete zone is missing
	for _, tool := range []string{"stargatectl", "mkfs.stargatefs"} {
		if err := os.Symlink("/bin/false", filepath.Join(broken, tool)); err != nil {
			t.Fatal(err)
		}
	}
	whole := n.config
	without := n.config
	without.ZoneKind, without.ZoneName, without.ToolsDir = "dax", "sm", broken
	as := func(c app.Config) (stop func()) { n.config = c; return n.start() }
	stop := as(without)
	id := "csi-" + strings.Repeat("0123456789abcdef", 4)
	publish := func() error {
		_, err := n.NodePublishVolume(background, &csi.NodePublishVolumeRequest{
			VolumeId: id, TargetPath: n.target("p"), VolumeCapability: rwo,
			VolumeContext: map[string]string{"csi.storage.k8s.io/ephemeral": "true", "size": "20Mi"},
		})
		return err
	}
	unpublish := func() error {
		_, err := n.NodeUnpublishVolume(background, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: n.target("p")})
		return err
	}
	if err := publish(); err == nil {
		t.Error("published without a zone")
	}
	if err := unpublish(); err != nil {
		t.Errorf("the pod cannot end: %v", err)
	}
	stop()
	stop = as(whole)
	if err := publish(); err != nil {
		t.Fatal(err)
	}
	stop()
	stop = as(without)
	if err := unpublish(); err == nil {
		t.Error("the volume is reported as deleted although the zone cannot be read")
	}
	stop()
	as(whole)
	n.unpublish(id, "p")
	if left := n.rest(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// atOnce makes each call twice at the same time. One of the two calls may fail with Aborted because
// of the other call, and is then repeated.
func (n *node) atOnce(volumes int, what string, do func(name string) error) {
	n.t.Helper()
	var g sync.WaitGroup
	for i := range 2 * volumes {
		g.Add(1)
		go func() {
			defer g.Done()
			name := fmt.Sprintf("v%d", i/2)
			err := do(name)
			for status.Code(err) == codes.Aborted {
				time.Sleep(10 * time.Millisecond)
				err = do(name)
			}
			if err != nil {
				n.t.Errorf("%s %s: %v", what, name, err)
			}
		}()
	}
	g.Wait()
}

func (n *node) createAtOnce(volumes int) {
	n.t.Helper()
	n.atOnce(volumes, "create", func(name string) error {
		_, err := n.CreateVolume(background, createRequest(name, 16*mib))
		return err
	})
	list, err := n.ListVolumes(background, &csi.ListVolumesRequest{})
	if err != nil || len(list.GetEntries()) != volumes {
		n.t.Fatalf("%d volumes, %v", len(list.GetEntries()), err)
	}
}

func (n *node) deleteAtOnce(volumes int) {
	n.t.Helper()
	n.atOnce(volumes, "delete", func(name string) error {
		_, err := n.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: name})
		return err
	})
}

func TestMany(t *testing.T) {
	n := newNode(t, 2*gib, "1g")
	n.start()
	const volumes = 24
	n.createAtOnce(volumes)
	bases := map[uint64]bool{}
	for _, f := range n.left() {
		out, err := exec.Command(filepath.Join(n.config.ToolsDir, "stargatectl"), "-j", "info", filepath.Join(n.zoneDir, f)).Output()
		var info struct{ Base string }
		if err == nil {
			err = json.Unmarshal(out, &info)
		}
		var base uint64
		if _, serr := fmt.Sscanf(info.Base, "0x%x", &base); err != nil || serr != nil || bases[base] {
			t.Errorf("%s: base %s taken, or %v", f, info.Base, err)
		}
		bases[base] = true
	}
	n.deleteAtOnce(volumes)
	if largest, all := capacity(t, n, "2Mi"); largest != gib || all != gib || len(n.left()) > 0 {
		t.Errorf("largest %d of %d, %v", largest, all, n.left())
	}
}

func TestPages(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.start()
	for i := range 5 {
		n.create(fmt.Sprintf("v%d", i), 16*mib)
	}
	var seen []string
	token := ""
	for {
		res, err := n.ListVolumes(background, &csi.ListVolumesRequest{MaxEntries: 2, StartingToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range res.GetEntries() {
			seen = append(seen, pool.NameOf(e.GetVolume().GetVolumeId()))
		}
		if token = res.GetNextToken(); token == "" {
			break
		}
		n.delete(seen[len(seen)-1]) // the token is still valid
	}
	if strings.Join(seen, " ") != "v0 v1 v2 v3 v4" {
		t.Errorf("seen: %v", seen)
	}
	_, err := n.ListVolumes(background, &csi.ListVolumesRequest{StartingToken: "nonsense"})
	wants(t, "token", err, codes.Aborted)
}

// The driver reports a damaged volume, refuses to use it, and can delete it.
func TestHealth(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.start()
	n.create("v", 32*mib)
	health := func() []*csi.VolumeHealth_VolumeHealthEntry {
		res, err := n.NodeGetVolumeHealth(background, &csi.NodeGetVolumeHealthRequest{VolumeId: "v"})
		if err != nil {
			t.Fatal(err)
		}
		return res.GetVolumeHealth().GetHealthStatuses()
	}
	if h := health(); len(h) != 0 {
		t.Errorf("well, and is said to be %v", h)
	}
	n.mounted("v", "writable")
	if h := health(); len(h) != 0 {
		t.Errorf("mounted, and is said to be %v", h)
	}
	n.mounted("v", "shut down")
	if h := health(); len(h) != 1 || h[0].GetStatus() != csi.VolumeHealthErrorType_INACCESSIBLE || h[0].GetReason() != "ShutDown" {
		t.Errorf("the volume's mount is shut down, but its health is %v", h)
	}
	file := filepath.Join(n.zoneDir, "v.stargate")
	if err := os.WriteFile(file, bytes.Repeat([]byte{0x5a}, int(32*mib)), 0o660); err != nil {
		t.Fatal(err)
	}
	if h := health(); len(h) != 1 || h[0].GetStatus() != csi.VolumeHealthErrorType_DATA_LOSS || h[0].GetReason() != "Damaged" {
		t.Errorf("damaged, and is said to be %v", h)
	}
	list, err := n.ControllerListVolumeHealth(background, &csi.ControllerListVolumeHealthRequest{})
	if err != nil || len(list.GetEntries()) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	_, err = n.NodeStageVolume(background, n.stageRequest("v", rwx))
	wants(t, "stage", err, codes.FailedPrecondition, "cannot be used")
	_, err = n.CreateVolume(background, createRequest("v", 32*mib))
	wants(t, "create", err, codes.AlreadyExists)
	n.delete("v")
}

// On a node without a zone, the driver has no capacity. If the configured zone is missing, the
// driver reports this.
func TestNoZone(t *testing.T) {
	for _, kind := range []string{"none", "dax"} {
		n := newNode(t, gib, "16m")
		n.config.ZoneKind, n.config.ZoneName = kind, "no-such-zone"
		stop := n.start()
		if largest, all := capacity(t, n, "2Mi"); largest != 0 || all != 0 {
			t.Errorf("%s: there are %d, %d", kind, largest, all)
		}
		_, err := n.CreateVolume(background, createRequest("v", 32*mib))
		wants(t, kind, err, codes.ResourceExhausted, "n1")
		// The node may have had a zone, and after a success the caller would drop the
		// volume.
		_, err = n.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: "v"})
		wants(t, kind+": delete", err, codes.Unavailable, "zone")
		_, err = n.DeleteSnapshot(background, &csi.DeleteSnapshotRequest{SnapshotId: pool.SnapshotName("s")})
		wants(t, kind+": delete a snapshot", err, codes.Unavailable, "zone")
		n.unpublish("v", "p")
		res, err := n.NodeGetStorageHealth(background, &csi.NodeGetStorageHealthRequest{})
		if err != nil || len(res.GetBackendHealth()) != map[string]int{"none": 0, "dax": 1}[kind] {
			t.Errorf("%s: %v, %v", kind, res, err)
		}
		stop()
	}
}

// The driver registers itself with kubelet. Only root can open its sockets.
func TestRegistration(t *testing.T) {
	n := newNode(t, gib, "64m")
	n.config.Registration, n.config.KubeletEndpoint = n.dir, "/var/lib/kubelet/plugins/stargate/csi.sock"
	n.start()
	socket := filepath.Join(n.dir, "stargate.csi.dev-reg.sock")
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := registration.NewRegistrationClient(conn)
	info, err := client.GetInfo(background, &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil || info.GetType() != registration.CSIPlugin || info.GetName() != "stargate.csi.dev" || info.GetEndpoint() != n.config.KubeletEndpoint {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := client.NotifyRegistrationStatus(background, &registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		t.Error(err)
	}
	for _, s := range []string{socket, filepath.Join(n.dir, "csi.sock")} {
		if st, err := os.Stat(s); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", s, st, err)
		}
	}
}

// If the driver cannot create one of its sockets, it exits with a message and removes the other
// sockets. Otherwise kubelet and the sidecars would wait at a socket without a server.
func TestAllSocketsOrNone(t *testing.T) {
	for what, spoil := range map[string]func(n *node){
		"metrics: ":                   func(n *node) { n.config.HTTP = "127.0.0.1:99999" },
		"CSI services: ":              func(n *node) { n.config.Endpoint = "unix://" + n.kubelet },
		"registration with kubelet: ": func(n *node) { n.config.Registration = filepath.Join(n.dir, "none") },
		"cluster: ":                   func(n *node) { n.config.Cluster = true },
	} {
		n := newNode(t, gib, "64m")
		n.config.HTTP, n.config.Registration, n.config.KubeletEndpoint = freePort(t), n.dir, "/csi.sock"
		port := n.config.HTTP
		spoil(n)
		err := app.Run(background, n.config)
		if err == nil || !strings.HasPrefix(err.Error(), what) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s%v", what, err)
		}
		left, gerr := filepath.Glob(filepath.Join(n.dir, "*.sock*"))
		hidden, herr := filepath.Glob(filepath.Join(n.dir, ".*.new"))
		if gerr != nil || herr != nil || len(left)+len(hidden) > 0 {
			t.Errorf("%sleft: %v %v", what, left, hidden)
		}
		if l, err := net.Listen("tcp", port); err != nil {
			t.Errorf("%s%v", what, err)
		} else {
			l.Close()
		}
	}
}

// freePort returns a port that has no listener at present.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A volume grows into its reserve even if another volume follows it. The reserve occupies addresses
// and memory.
func TestReserve(t *testing.T) {
	n := newNode(t, 256*mib, "192m")
	n.config.HTTP = freePort(t)
	n.start()
	r := createRequest("v", 32*mib)
	r.Parameters = map[string]string{"reserve": "64Mi"}
	if res, err := n.CreateVolume(background, r); err != nil || res.GetVolume().GetCapacityBytes() != 32*mib {
		t.Fatalf("%v, %v", res, err)
	}
	if _, err := n.CreateVolume(background, r); err != nil {
		t.Errorf("again: %v", err)
	}
	var made unix.Stat_t
	if err := unix.Stat(filepath.Join(n.zoneDir, "v.stargate"), &made); err != nil || made.Blocks*512 < 96*mib {
		t.Errorf("a machine allocates 96 MiB, but only %d bytes are allocated, %v", made.Blocks*512, err)
	}
	if res, err := n.CreateVolume(background, r); err != nil || res.GetVolume().GetVolumeContext()["memory"] != fmt.Sprint(96*mib) {
		t.Errorf("the volume's memory is not reported: %v, %v", res, err)
	}
	if largest, _ := n.room(nil); largest != 96*mib {
		t.Errorf("there is room for %d bytes", largest)
	}
	if largest, _ := n.room(map[string]string{"reserve": "64Mi"}); largest != 32*mib {
		t.Errorf("after a volume with a reserve, there is room for %d bytes", largest)
	}
	n.create("w", 32*mib)
	if largest, _ := n.room(map[string]string{"reserve": "64Mi"}); largest != 0 {
		t.Errorf("there is no memory for another reserve, but the reported room is %d bytes", largest)
	}
	more := createRequest("x", 32*mib)
	more.Parameters = map[string]string{"reserve": "64Mi"}
	_, err := n.CreateVolume(background, more)
	wants(t, "no memory for its reserve", err, codes.ResourceExhausted)
	const grows = `stargate_volume_can_grow_to_bytes{volume="v"} 1.00663296e+08`
	if _, text := get(t, "http://"+n.config.HTTP+"/metrics"); !strings.Contains(text, grows) {
		t.Errorf("metrics without %s:\n%s", grows, text)
	}
	n.stage("v", rwx)
	n.publish("v", "a", rwx, false)
	if st, err := os.Stat(filepath.Join(n.target("a"), ".stargate", "region")); err != nil || st.Size() != 96*mib {
		t.Errorf("a machine gets %v, %v", st, err)
	}
	text, err := os.ReadFile(filepath.Join(n.target("a"), ".stargate", "volume.json"))
	if err != nil || !strings.Contains(string(text), fmt.Sprintf(`"size": %d`, 96*mib)) {
		t.Errorf("it is told %s, %v", text, err)
	}
	grow := func(size int64) error {
		_, err := n.NodeExpandVolume(background, &csi.NodeExpandVolumeRequest{
			VolumeId: "v", VolumePath: n.target("a"), CapacityRange: &csi.CapacityRange{RequiredBytes: size},
		})
		return err
	}
	if err := grow(64 * mib); err != nil {
		t.Error(err)
	}
	if err := grow(96 * mib); err != nil {
		t.Error(err)
	}
	wants(t, "growth beyond the reserve", grow(98*mib), codes.OutOfRange, fmt.Sprint(96*mib))
	n.unpublish("v", "a")
	n.unstage("v")
	n.sound("grown")
	n.delete("v")
	n.delete("w")
	if left := n.rest(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	r.Parameters = map[string]string{"reserve": "512Mi"}
	_, err = n.CreateVolume(background, r)
	wants(t, "no addresses", err, codes.ResourceExhausted)
	r.Parameters = map[string]string{"reserve": "64Mi", "maxSize": "64Mi"}
	_, err = n.CreateVolume(background, r)
	wants(t, "growth beyond the largest size", err, codes.InvalidArgument, "maxSize")
}

// room returns the size of the largest possible volume, and of all free memory.
func (n *node) room(parameters map[string]string) (largest, all int64) {
	n.t.Helper()
	res, err := n.GetCapacity(background, &csi.GetCapacityRequest{Parameters: parameters})
	if err != nil {
		n.t.Fatal(err)
	}
	return res.GetMaximumVolumeSize().GetValue(), res.GetAvailableCapacity()
}
