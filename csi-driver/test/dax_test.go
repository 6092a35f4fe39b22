// SPDX-License-Identifier: Apache-2.0

//go:build dax

package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
)

// These tests use a zone of reserved memory, real mounts and the real program. They run in the VM
// of e2e/scenarios/csi.sh, which passes the paths.
const (
	envZone   = "SG_CSI_ZONE"   // name of the zone
	envBinary = "SG_CSI_BINARY" // path of stargate-csi
)

func newDAXNode(t testing.TB) *node {
	t.Helper()
	n := bareNode(t)
	n.config.ZoneKind, n.config.ZoneName = "dax", os.Getenv(envZone)
	n.left, n.sound, n.writable = n.volumesLeft, n.volumesSound, n.volumesWritable
	if n.config.ZoneName == "" {
		t.Fatalf("%s must be the name of a zone, whose volumes the test deletes", envZone)
	}
	return n
}

// binary runs the released program.
func (n *node) binary() *process {
	n.t.Helper()
	p := &process{n: n, done: make(chan error, 1)}
	p.cmd = exec.Command(os.Getenv(envBinary), "--endpoint", n.config.Endpoint, "--node", n.config.Driver.NodeID,
		"--zone-kind", "dax", "--zone", n.config.ZoneName, "--kubelet-dir", n.config.KubeletDir,
		"--default-size", "32Mi", "--controller-expand", "-v", "4", "--http", n.config.HTTP, "--snapshot-dir", n.config.SnapshotDir)
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait(); close(p.done) }()
	n.await(p.done)
	n.t.Cleanup(func() {
		if n.t.Failed() {
			n.t.Logf("the driver's log: %s", p.log.String())
		}
	})
	return p
}

func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, said.String())
	}
	return string(out)
}

func (n *node) volumesLeft() []string {
	n.t.Helper()
	return strings.Fields(run(n.t, "lvs", "--noheadings", "-o", "lv_name", n.config.ZoneName))
}

type shownVolume struct {
	Volume, State, Device string
	Size                  int64
	Base                  string
}

func (n *node) volumes() []shownVolume {
	n.t.Helper()
	var shown struct{ Volumes []shownVolume }
	if err := json.Unmarshal([]byte(run(n.t, "stargatectl", "-j", "volume", "list", n.config.ZoneName)), &shown); err != nil {
		n.t.Fatal(err)
	}
	return shown.Volumes
}

// volumesSound checks the volumes that a killed driver has left: complete volumes, and incomplete
// volumes that the next change of the zone removes.
func (n *node) volumesSound(when string) {
	n.t.Helper()
	for _, v := range n.volumes() {
		switch v.State {
		case "ready", "in use", "unfinished", "snapshot":
		default:
			n.t.Errorf("%s: volume %s is %s", when, v.Volume, v.State)
		}
		if v.State == "ready" {
			run(n.t, "stargatectl", "volume", "check", n.config.ZoneName+"/"+v.Volume)
		}
	}
}

func (n *node) volumesWritable(when string) {
	n.t.Helper()
	for pod, may := range map[string]bool{"a": true, "b": false, "inline": true} {
		err := os.WriteFile(filepath.Join(n.target(pod), "file"), []byte(pod), 0o600)
		if (err == nil) != may {
			n.t.Errorf("%s: pod %s writes: %v", when, pod, err)
		}
	}
}

// nothingLeft checks at the end of a test that no objects are left.
func (n *node) nothingLeft() {
	n.t.Helper()
	if left := n.rest(); len(left) > 0 {
		n.t.Errorf("left behind: %v", left)
	}
}

func TestDAXSanity(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	n.sanity()
	p.stop()
}

// Pods and VMs (by the volume's memory) see the same files. When a volume grows, its mounts grow,
// too.
func TestDAXPods(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	n.create("v", 64*mib)
	n.stage("v", rwx)
	n.stage("v", rwx)
	n.publish("v", "w", rwx, false)
	n.publish("v", "w", rwx, false)
	n.publish("v", "r", rwx, true)
	n.publish("v", "x", rox, false)
	text := []byte("from one pod to another")
	if err := os.WriteFile(filepath.Join(n.target("w"), "hello"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, pod := range []string{"r", "x"} {
		if got, err := os.ReadFile(filepath.Join(n.target(pod), "hello")); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s reads %q, %v", pod, got, err)
		}
		if err := os.WriteFile(filepath.Join(n.target(pod), "hello"), nil, 0o644); err == nil {
			t.Errorf("%s may write", pod)
		}
		if f, err := os.OpenFile(filepath.Join(n.target(pod), ".stargate", "region"), os.O_RDWR, 0); err == nil {
			f.Close()
			t.Errorf("%s may write to the region", pod)
		}
	}
	_, err := n.NodePublishVolume(background, n.publishRequest("v", "w", rwx, true))
	wants(t, "a second publication with other attributes", err, codes.AlreadyExists)
	_, err = n.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: "v"})
	wants(t, "deleting what is mounted", err, codes.FailedPrecondition, n.kubelet)

	res, err := n.NodeExpandVolume(background, &csi.NodeExpandVolumeRequest{
		VolumeId: "v", VolumePath: n.target("w"), CapacityRange: &csi.CapacityRange{RequiredBytes: 96*mib - 1},
	})
	if err != nil || res.GetCapacityBytes() != 96*mib {
		t.Fatalf("expand: %v, %v", res, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(n.target("r"), &fs); err != nil || int64(fs.Blocks)*fs.Bsize < 80*mib {
		t.Errorf("pods see %d bytes, %v", int64(fs.Blocks)*fs.Bsize, err)
	}
	if st, err := os.Stat(filepath.Join(n.target("w"), ".stargate", "region")); err != nil || st.Size() != 96*mib {
		t.Errorf("the region: %v, %v", st, err)
	}
	if err := os.WriteFile(filepath.Join(n.target("w"), "large"), bytes.Repeat([]byte("x"), int(72*mib)), 0o644); err != nil {
		t.Errorf("the new space: %v", err)
	}
	_, err = n.NodeExpandVolume(background, &csi.NodeExpandVolumeRequest{
		VolumeId: "v", VolumePath: n.target("w"), CapacityRange: &csi.CapacityRange{RequiredBytes: 64 * gib},
	})
	wants(t, "more than there is", err, codes.OutOfRange, "largest possible size")
	stats, err := n.NodeGetVolumeStats(background, &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: n.target("w")})
	if err != nil || len(stats.GetUsage()) != 2 || stats.GetUsage()[0].GetUsed() < 72*mib || stats.GetUsage()[1].GetUsed() < 3 {
		t.Errorf("stats: %v, %v", stats, err)
	}
	if h, err := n.NodeGetVolumeHealth(background, &csi.NodeGetVolumeHealthRequest{VolumeId: "v"}); err != nil || len(h.GetVolumeHealth().GetHealthStatuses()) > 0 {
		t.Errorf("health: %v, %v", h, err)
	}
	for _, pod := range []string{"w", "r", "x"} {
		n.unpublish("v", pod)
		n.unpublish("v", pod)
	}
	n.unstage("v")
	n.unstage("v")
	run(t, "stargatectl", "volume", "check", n.config.ZoneName+"/v")
	n.delete("v")
	n.delete("v")
	p.stop()
	n.nothingLeft()
}

// Pods that name a data set share the pages of one copy, which the module has sealed. The next
// driver offers this copy, and it goes with its data set.
func TestDAXDataset(t *testing.T) {
	n := newDAXNode(t)
	all, sent, add := n.withDatasets(simple)
	stop := n.start()
	content := model()
	name := add(content)
	for _, pod := range []string{"a", "b"} {
		if _, err := n.NodePublishVolume(background, n.datasetRequest(pod, name)); err != nil {
			t.Fatalf("pod %s: %v", pod, err)
		}
		if err := os.WriteFile(n.inPod(pod, "x"), nil, 0o644); !errors.Is(err, unix.EROFS) {
			t.Errorf("pod %s writes: %v", pod, err)
		}
		f, err := os.Open(n.inPod(pod, "weights/-model.bin"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := unix.Mmap(int(f.Fd()), 0, len(content), unix.PROT_READ, unix.MAP_SHARED)
		if err != nil || !bytes.Equal(b, content) {
			t.Errorf("pod %s maps %d bytes, %v", pod, len(b), err)
		}
		if err == nil {
			err = unix.Munmap(b)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Error(err)
		}
	}
	n.sealedInVolume()
	if left := n.left(); len(left) != 1 || sent.Load() != 3 { // three ranges
		t.Errorf("%d ranges, volumes %q", sent.Load(), left)
	}
	stop()
	stop = n.start()
	if _, err := n.NodePublishVolume(background, n.datasetRequest("c", name)); err != nil || sent.Load() != 3 {
		t.Fatalf("the next driver: %v, %d ranges", err, sent.Load())
	}
	n.sameInPods(content, "a", "b", "c")
	all.forget("models/" + name)
	for _, pod := range []string{"a", "b", "c"} {
		n.unpublish(n.datasetRequest(pod, "").VolumeId, pod)
	}
	for end := time.Now().Add(time.Minute); len(n.left()) > 0 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	n.nothingLeft()
}

// The module decides whether a process may open a volume's memory. Without VMs, it always refuses.
// With VMs, a member of QEMU's group can open the memory only through the mount of a VM's pod. If a
// volume was staged before the driver knew VMs, the driver protects it when it publishes the volume
// to the next pod.
func TestDAXRegion(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	n.create("v", 64*mib)
	for _, dir := range []string{n.dir, n.kubelet} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	opens := func(pod string, want bool) {
		t.Helper()
		for _, name := range []string{"region", "region@00000000-1111-2222-3333-444444444444"} {
			cmd := exec.Command("sh", "-c", `: <>"$1"`, "sh", filepath.Join(n.target(pod), ".stargate", name))
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000, Groups: []uint32{107}}}
			if said, err := cmd.CombinedOutput(); (err == nil) != want {
				t.Errorf("%s: %s: %v, %s", pod, name, err, said)
			}
		}
	}
	super := func(pod string) string {
		t.Helper()
		at, err := mounts.New().At(n.target(pod))
		if err != nil || at == nil {
			t.Fatal(at, err)
		}
		return strings.Join(at.SuperOptions, ",")
	}
	n.stage("v", rwx)
	n.publish("v", "pod", rwx, false)
	opens("pod", false)
	if o := super("pod"); !strings.Contains(o, "region_nodiratime") || strings.Contains(o, "region_gid") {
		t.Errorf("without machines: %s", o)
	}
	// A driver with VMs starts, and the volume is already staged.
	v := pool.Volume{Name: "v", Path: "/dev/" + n.config.ZoneName + "/v"}
	show := publish.NewDAX(mounts.New(), 107, true)
	for pod, o := range map[string]publish.Options{"machine": {Machine: true}, "reader": {Machine: true, ReadOnly: true}, "other": {}} {
		if err := os.MkdirAll(n.target(pod), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := show.Publish(background, v, n.staging("v"), n.target(pod), o); err != nil {
			t.Fatal(err)
		}
	}
	opens("machine", true)
	for _, pod := range []string{"pod", "other", "reader"} {
		opens(pod, false)
	}
	if o := super("other"); !strings.Contains(o, "region_gid=107") || !strings.Contains(o, "region_mode=0660") {
		t.Errorf("with machines: %s", o)
	}
	if have, err := show.Machines(v); err != nil || len(have) != 2 {
		t.Errorf("machines at %v, %v", have, err)
	}
	// This binds a part of a pod's mount again, like kubelet for a subPath.
	again := n.target("again")
	if err := os.Mkdir(again, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(n.target("other"), again, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	opens("again", false)
	if err := unix.Unmount(again, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(again); err != nil {
		t.Fatal(err)
	}
	for _, pod := range []string{"pod", "machine", "reader", "other"} {
		n.unpublish("v", pod)
	}
	n.unstage("v")
	n.delete("v")
	p.stop()
	n.nothingLeft()
}

// The node does not join a volume that all pods only read, so that VMs without write access can
// mount it. Such a volume can be copied, and can grow while it is unused. A system that was fenced
// earlier has been recovered.
func TestDAXReaders(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	n.create("v", 32*mib)
	n.stage("v", rwx)
	n.publish("v", "w", rwx, false)
	if err := os.WriteFile(filepath.Join(n.target("w"), "hello"), []byte("to all"), 0o644); err != nil {
		t.Fatal(err)
	}
	ofWriters := n.takeSnapshot("of-writers", "v").GetSnapshotId()
	n.unpublish("v", "w")
	n.unstage("v")
	n.copyOf("restored", 32*mib, ofSnapshot(ofWriters))
	for _, id := range []string{"v", "restored"} {
		n.stage(id, rox)
		n.stage(id, rox)
		n.publish(id, "r-"+id, rox, false)
		at := n.target("r-" + id)
		if got, err := os.ReadFile(filepath.Join(at, "hello")); err != nil || string(got) != "to all" {
			t.Errorf("%s: %q, %v", id, got, err)
		}
		about, err := os.ReadFile(filepath.Join(at, ".stargate", "volume.json"))
		if err != nil || !bytes.Contains(about, []byte(`"joined": false`)) {
			t.Errorf("%s: %s, %v", id, about, err)
		}
		if f, err := os.Open(filepath.Join(at, ".stargate", "region")); err != nil {
			t.Errorf("%s: the region: %v", id, err)
		} else {
			f.Close()
		}
	}
	ofReaders := n.takeSnapshot("of-readers", "v").GetSnapshotId()
	n.copyOf("copy", 32*mib, ofVolume("v"))
	_, err := n.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: "v"})
	wants(t, "deleting what is mounted", err, codes.FailedPrecondition, n.kubelet)
	n.recovered("copy")
	for _, id := range []string{"v", "restored"} {
		n.unpublish(id, "r-"+id)
		n.unstage(id)
		n.delete(id)
	}
	n.deleteSnapshot(ofWriters)
	n.deleteSnapshot(ofReaders)
	n.delete("copy")
	p.stop()
	n.nothingLeft()
}

// recovered checks that the driver recovers a volume that a dead system has left, and then stages
// the volume for readers.
func (n *node) recovered(id string) {
	n.t.Helper()
	fifo := filepath.Join(n.dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		n.t.Fatal(err)
	}
	// When the tool opens its input, it has joined the volume.
	cmd := exec.Command("stargatectl", "put", "/dev/"+n.config.ZoneName+"/"+id, fifo, "/f")
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	end, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		n.t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	end.Close()
	n.stage(id, rox)
	if about, err := os.ReadFile(filepath.Join(n.staging(id), ".stargate", "volume.json")); err != nil || !bytes.Contains(about, []byte(`"joined": false`)) {
		n.t.Errorf("after a death: %s, %v", about, err)
	}
	r := &csi.NodeExpandVolumeRequest{VolumeId: id, VolumePath: n.staging(id), CapacityRange: &csi.CapacityRange{RequiredBytes: 64 * mib}}
	_, err = n.NodeExpandVolume(background, r)
	wants(n.t, "growing while all read", err, codes.FailedPrecondition, "read-only")
	n.unstage(id)
}

// fence fences this node, like another system. The module does not fence itself, and the tool uses
// the module if it finds it in sysfs. So the tool runs with an empty directory in place of the
// module's directory in sysfs.
func (n *node) fence(path string) {
	n.t.Helper()
	region := filepath.Join(path, ".stargate", "region")
	var table struct{ Systems []struct{ Slot int } }
	if err := json.Unmarshal([]byte(run(n.t, "stargatectl", "-j", "systems", region)), &table); err != nil || len(table.Systems) != 1 {
		n.t.Fatalf("%+v, %v", table, err)
	}
	run(n.t, "unshare", "--mount", "sh", "-c", `mount -t tmpfs none /sys/fs/stargatefs && exec stargatectl systems "$0" fence "$1" --force`,
		region, fmt.Sprint(table.Systems[0].Slot))
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.ReadDir(path); errors.Is(err, unix.EIO) {
			return
		}
		if time.Now().After(end) {
			n.t.Fatal("the node does not notice that it was fenced")
		}
	}
}

// A fenced mount cannot be used, but the driver can unmount it. The next pod gets a new mount.
func TestDAXFenced(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	n.create("v", 32*mib)
	n.stage("v", rwx)
	n.publish("v", "a", rwx, false)
	staging := n.staging("v")
	if err := os.WriteFile(filepath.Join(n.target("a"), "hello"), []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.fence(n.target("a"))
	n.unpublish("v", "a")
	n.unpublish("v", "a")
	if _, err := n.NodeUnstageVolume(background, &csi.NodeUnstageVolumeRequest{VolumeId: "v", StagingTargetPath: staging}); err != nil {
		t.Fatal(err)
	}
	n.stage("v", rwx)
	n.publish("v", "b", rwx, false)
	if got, err := os.ReadFile(filepath.Join(n.target("b"), "hello")); err != nil || string(got) != "before" {
		t.Errorf("the next pod reads %q, %v", got, err)
	}
	n.unpublish("v", "b")
	n.unstage("v")
	n.delete("v")
	p.stop()
	n.nothingLeft()
}

func TestDAXOnePod(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	n.create("v", 32*mib)
	_, err := n.NodePublishVolume(background, n.publishRequest("v", "first", rwop, false))
	wants(t, "not staged", err, codes.FailedPrecondition, "not staged")
	n.stage("v", rwop)
	n.publish("v", "first", rwop, false)
	n.publish("v", "first", rwop, false)
	_, err = n.NodePublishVolume(background, n.publishRequest("v", "second", rwop, false))
	wants(t, "a second pod", err, codes.FailedPrecondition, "pod-first")
	n.unpublish("v", "first")
	n.publish("v", "second", rwop, false)
	n.unpublish("v", "second")
	n.unstage("v")
	n.delete("v")
	p.stop()
	n.nothingLeft()
}

// An operator changes the zone or mounts without the driver. The driver then reports the obstacle
// with the right code.
func TestDAXManualChanges(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	zone := n.config.ZoneName
	n.create("v", 32*mib)
	run(t, "lvcreate", "-y", "-q", "-n", "other", "-l", "8", zone)
	_, err := n.CreateVolume(background, createRequest("other", 32*mib))
	wants(t, "a name that another program has used", err, codes.AlreadyExists, "foreign")
	_, err = n.ControllerGetVolume(background, &csi.ControllerGetVolumeRequest{VolumeId: "other"})
	wants(t, "a volume of another program", err, codes.NotFound)
	n.delete("other")
	if left := n.left(); len(left) != 2 {
		t.Errorf("the driver deletes an object of another program: %v", left)
	}
	run(t, "lvremove", "-y", "-q", zone+"/other")
	at := filepath.Join(n.dir, "by-hand")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "mount", "-t", "stargatefs", "/dev/"+zone+"/v", at)
	_, err = n.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: "v"})
	wants(t, "a volume that another program has mounted", err, codes.FailedPrecondition, at)
	run(t, "umount", at)
	run(t, "vgchange", "-q", "-an", zone)
	n.stage("v", rwx) // creates the device again
	n.unstage("v")
	run(t, "vgchange", "-q", "-an", zone)
	if v := n.create("v", 32*mib); v.GetCapacityBytes() != 32*mib {
		t.Errorf("%v", v)
	}
	n.delete("v")
	p.stop()
	n.nothingLeft()
}

// GetCapacity reports the largest contiguous range. A volume of this size can be created.
func TestDAXCapacity(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	before, all := capacity(t, n, "2Mi")
	n.create("a", 64*mib)
	n.create("b", 64*mib)
	n.delete("a")
	largest, free := capacity(t, n, "2Mi")
	if free != all-64*mib || largest > free-64*mib {
		t.Errorf("largest %d of %d, before %d of %d", largest, free, before, all)
	}
	_, err := n.CreateVolume(background, createRequest("c", largest+2*mib))
	wants(t, "a volume larger than the reported size", err, codes.ResourceExhausted, fmt.Sprint(largest))
	n.create("c", largest)
	if largest, _ := capacity(t, n, "2Mi"); largest != 64*mib {
		t.Errorf("largest %d; should be 64 MiB", largest)
	}
	n.delete("b")
	n.delete("c")
	if l, f := capacity(t, n, "2Mi"); l != before || f != all {
		t.Errorf("largest %d of %d, before %d of %d", l, f, before, all)
	}
	p.stop()
	n.nothingLeft()
}

// swept waits until no incomplete objects are left. A restarted driver removes them without a call.
func (n *node) swept() {
	n.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		half := slices.ContainsFunc(n.volumes(), func(v shownVolume) bool { return v.State == "unfinished" })
		if !half || n.t.Failed() {
			return
		}
		if time.Now().After(end) {
			n.t.Fatal("the driver does not remove an incomplete object")
		}
	}
}

// When the driver starts, it removes a volume that a killed driver has not completely deleted. It
// does not wait for a change, because there may be no call while that volume takes all the room.
func TestDAXSwept(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	before, all := capacity(t, n, "2Mi")
	n.create("half", 64*mib)
	p.stop()
	run(t, "lvchange", "--addtag", "stargate.wiping", n.config.ZoneName+"/half")
	p = n.binary()
	n.swept()
	if l, f := capacity(t, n, "2Mi"); l != before || f != all {
		t.Errorf("largest %d of %d, before %d of %d", l, f, before, all)
	}
	p.stop()
	n.nothingLeft()
}

// If the module was unloaded, the kernel cannot mount volumes. The zone then has no room, but
// existing volumes can be deleted.
func TestDAXWithoutModule(t *testing.T) {
	n := newDAXNode(t)
	n.config.HTTP = freePort(t)
	run(t, "stargatectl", "volume", "create", n.config.ZoneName+"/old", "--size", "64M")
	p := n.binary()
	if largest, all := capacity(t, n, "2Mi"); largest != 0 || all != 0 {
		t.Errorf("largest %d of %d", largest, all)
	}
	_, err := n.CreateVolume(background, createRequest("new", 64*mib))
	wants(t, "create", err, codes.ResourceExhausted, "stargatefs", "module")
	_, err = n.CreateVolume(background, createRequest("old", 64*mib))
	if err != nil {
		t.Errorf("existing volumes: %v", err)
	}
	_, metrics := get(t, "http://"+n.config.HTTP+"/metrics")
	if !strings.Contains(metrics, `stargate_zone_up{kind="dax"} 0`) {
		t.Error("the metrics report that the zone can be used")
	}
	n.delete("old")
	p.stop()
	n.nothingLeft()
}

// A volume grows into its reserve, even if another volume follows it in memory. This also holds for
// a copy.
func TestDAXReserve(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	parameters := map[string]string{"reserve": "32Mi"}
	before, _ := n.room(nil)
	if less, _ := n.room(parameters); less != before-32*mib {
		t.Errorf("of %d bytes, %d are free after the creation of a volume with a reserve", before, less)
	}
	made := createRequest("v", 32*mib)
	copied := copyRequest("w", 32*mib, ofVolume("v"))
	made.Parameters, copied.Parameters = parameters, parameters
	for _, r := range []*csi.CreateVolumeRequest{made, copied, createRequest("x", 32*mib)} {
		for range 2 {
			if res, err := n.CreateVolume(background, r); err != nil || res.GetVolume().GetCapacityBytes() != 32*mib {
				t.Fatalf("%v, %v", res, err)
			}
		}
	}
	for _, id := range []string{"v", "w"} {
		n.stage(id, rwx)
		n.publish(id, id, rwx, false)
		if st, err := os.Stat(filepath.Join(n.target(id), ".stargate", "region")); err != nil || st.Size() != 64*mib {
			t.Errorf("%s: a machine gets %v, %v", id, st, err)
		}
		r := &csi.NodeExpandVolumeRequest{VolumeId: id, VolumePath: n.target(id), CapacityRange: &csi.CapacityRange{RequiredBytes: 64 * mib}}
		if _, err := n.NodeExpandVolume(background, r); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		n.unpublish(id, id)
		n.unstage(id)
		run(t, "stargatectl", "volume", "check", n.config.ZoneName+"/"+id)
	}
	for _, id := range []string{"x", "w", "v"} {
		n.delete(id)
	}
	p.stop()
	n.nothingLeft()
}

// While a pod writes and the zone is full, the driver stores a snapshot in the folder. Later, the
// snapshot is copied to a volume of the zone.
func TestDAXOutside(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	n.create("source", 64*mib)
	n.stage("source", rwx)
	n.publish("source", "w", rwx, false)
	text := bytes.Repeat([]byte("bytes of a file "), 1<<20)
	if err := os.WriteFile(filepath.Join(n.target("w"), "file"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	largest, _ := capacity(t, n, "2Mi")
	n.create("filler", largest)
	stop, done := make(chan struct{}), make(chan error)
	go func() { done <- writes(filepath.Join(n.target("w"), "log"), stop) }()
	n.snapshotsOutside(64*mib, "source", func() {
		close(stop)
		if err := <-done; err != nil {
			t.Error(err)
		}
		n.unpublish("source", "w")
		n.unstage("source")
	})
	n.stage("restored", rwx)
	n.publish("restored", "r", rwx, false)
	if got, err := os.ReadFile(filepath.Join(n.target("r"), "file")); err != nil || !bytes.Equal(got, text) {
		t.Errorf("the copy has %d bytes, %v", len(got), err)
	}
	n.unpublish("restored", "r")
	n.unstage("restored")
	run(t, "stargatectl", "volume", "check", n.config.ZoneName+"/restored")
	n.delete("restored")
	n.delete("filler")
	p.stop()
	n.nothingLeft()
}

// writes writes to a file until stop is called.
func writes(path string, stop chan struct{}) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(time.Millisecond):
		}
		if _, err := f.WriteString("a line\n"); err != nil {
			return err
		}
	}
}

// Many calls compete for the locks of LVM, stargatectl and the driver.
func TestDAXMany(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	before, all := capacity(t, n, "2Mi")
	const volumes = 12
	n.createAtOnce(volumes)
	for _, v := range n.volumes() {
		if v.State != "ready" || v.Size != 16*mib {
			t.Errorf("%+v", v)
		}
	}
	n.deleteAtOnce(volumes)
	if largest, free := capacity(t, n, "2Mi"); largest != before || free != all {
		t.Errorf("largest %d of %d, before %d of %d", largest, free, before, all)
	}
	p.stop()
	n.nothingLeft()
}

// Two hundred claims of one node, each requested twice, compete in the same way.
func TestDAXAtOnce(t *testing.T) {
	n := newDAXNode(t)
	p := n.binary()
	before, all := capacity(t, n, "2Mi")
	const volumes = 200
	start := time.Now()
	n.createAtOnce(volumes)
	made := time.Now()
	n.deleteAtOnce(volumes)
	t.Logf("%d volumes made in %s, deleted in %s", volumes, made.Sub(start), time.Since(made))
	if largest, free := capacity(t, n, "2Mi"); largest != before || free != all {
		t.Errorf("largest %d of %d, before %d of %d", largest, free, before, all)
	}
	p.stop()
	n.nothingLeft()
}

// LVM's files on the node do not grow with the number of deleted volumes. The test creates few
// volumes, because LVM takes seconds for each volume under emulation.
func TestDAXOverTime(t *testing.T) {
	n := newDAXNode(t)
	n.config.HTTP = freePort(t)
	p := n.binary()
	before := lvmFiles(t)
	n.overTime(p, 20, demand(20, 200), 100)
	if after := lvmFiles(t); len(after) > len(before)+1 {
		t.Errorf("LVM now keeps %d files, and kept %d before: %v", len(after), len(before), after)
	}
	if devices := run(t, "dmsetup", "ls"); strings.Contains(devices, n.config.ZoneName+"-") {
		t.Errorf("devices are left: %s", devices)
	}
}

// lvmFiles returns LVM's files about volume groups: the last state of each group, and older states.
func lvmFiles(t testing.TB) []string {
	t.Helper()
	var files []string
	for _, dir := range []string{"backup", "archive"} {
		found, err := filepath.Glob(filepath.Join("/etc/lvm", dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

func TestDAXKillAtEachStep(t *testing.T) {
	const least = 20
	n := newDAXNode(t)
	deathAtEachStep(n, least)
}

func TestDAXKillAtAnyTime(t *testing.T) {
	deathAtAnyTime(newDAXNode(t), 6, 20*time.Second)
}

// The node's power is cut while the driver creates, deletes and grows volumes, and a pod writes to
// a volume. The second half of the test runs after the next boot.
func TestDAXPowerCutBefore(t *testing.T) {
	n := newDAXNode(t)
	n.binary()
	n.create("kept", 64*mib)
	n.stage("kept", rwx)
	n.publish("kept", "a", rwx, false)
	f, err := os.Create(filepath.Join(n.target("a"), "file"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(bytes.Repeat([]byte("kept"), 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	n.create("gone", 128*mib)
	go n.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: "gone"})
	go n.CreateVolume(background, createRequest("half", 256*mib))
	go n.NodeExpandVolume(background, &csi.NodeExpandVolumeRequest{
		VolumeId: "kept", VolumePath: n.target("a"), CapacityRange: &csi.CapacityRange{RequiredBytes: 96 * mib},
	})
	fmt.Println("begun")
	time.Sleep(patience)
	t.Error("the power has not been cut")
}

func TestDAXPowerCutAfter(t *testing.T) {
	n := newDAXNode(t)
	for _, v := range n.volumes() {
		fmt.Printf("after the power cut: %s is %s, %d bytes\n", v.Volume, v.State, v.Size)
	}
	p := n.binary()
	n.swept()
	list, err := n.ListVolumes(background, &csi.ListVolumesRequest{})
	if err != nil || !strings.Contains(fmt.Sprint(list.GetEntries()), `"kept"`) {
		t.Errorf("%v, %v", list, err)
	}
	n.stage("kept", rwx)
	n.publish("kept", "a", rwx, false)
	got, err := os.ReadFile(filepath.Join(n.target("a"), "file"))
	if err != nil || !bytes.Equal(got, bytes.Repeat([]byte("kept"), 1<<20)) {
		t.Errorf("the file has %d bytes, %v", len(got), err)
	}
	res, err := n.NodeExpandVolume(background, &csi.NodeExpandVolumeRequest{
		VolumeId: "kept", VolumePath: n.target("a"), CapacityRange: &csi.CapacityRange{RequiredBytes: 96 * mib},
	})
	if err != nil && status.Code(err) != codes.OutOfRange { // another call may have created a volume of half the size first
		t.Errorf("expand: %v, %v", res, err)
	}
	n.create("half", 256*mib)
	n.delete("gone")
	n.delete("half")
	n.unpublish("kept", "a")
	n.unstage("kept")
	run(t, "stargatectl", "volume", "check", n.config.ZoneName+"/kept")
	n.delete("kept")
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	if _, err := n.Probe(ctx, &csi.ProbeRequest{}); err != nil {
		t.Error(err)
	}
	p.stop()
	n.nothingLeft()
}
