// SPDX-License-Identifier: Apache-2.0

// Package test tests the complete driver over its socket, with a zone of files, real mounts and the
// tools that `make build` has built. It needs root, and should run in a separate mount namespace,
// as in `make test SUITE=csi`. Without root or tools, `go test` skips these tests. If SG_TOOLS is
// set, as by mk/test/csi, they fail instead.
package test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"stargate/csi-driver/internal/app"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// node is a test node with a zone and a folder for kubelet's paths.
type node struct {
	t       testing.TB
	config  app.Config
	dir     string
	zoneDir string
	kubelet string
	// These functions depend on the kind of zone. They list its objects, check it after a
	// driver was killed, and check the pods' files.
	left     func() []string
	sound    func(when string)
	writable func(when string)
	csi.IdentityClient
	csi.ControllerClient
	csi.NodeClient
}

// needs skips a test if the machine does not meet its requirements. If SG_TOOLS is set, the test
// fails instead.
func needs(t testing.TB, err error, what string) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("SG_TOOLS") != "":
		t.Fatalf("%s: %v", what, err)
	default:
		t.Skipf("%s: %v", what, err)
	}
}

// needsRoot skips a test that mounts if the process is not root.
func needsRoot(t testing.TB) {
	t.Helper()
	var err error
	if os.Geteuid() != 0 {
		err = unix.EPERM
	}
	needs(t, err, "mounts need root")
}

// toolsDir returns the folder of the real tools.
func toolsDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("SG_TOOLS")
	if dir == "" {
		dir = filepath.Join("..", "..", "build", "tools")
	}
	_, err := os.Stat(filepath.Join(dir, "stargatectl"))
	needs(t, err, "the tools are needed: make build, or SG_TOOLS")
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// newNode returns a node with its folders, and a file system of the given size in memory for its
// zone. The driver does not run yet.
func newNode(t testing.TB, size int64, memory string) *node {
	t.Helper()
	tools := toolsDir(t)
	n := bareNode(t)
	if err := unix.Mount("zone", n.zoneDir, "tmpfs", 0, "size="+memory); err != nil {
		t.Fatal(err)
	}
	n.config.ZoneKind = "file"
	n.config.Sysfs = filepath.Join(n.dir, "sysfs")
	n.left, n.sound, n.writable = n.filesLeft, n.filesSound, n.filesWritable
	n.config.ToolsDir = tools
	n.config.File.Dir, n.config.File.Size, n.config.File.Base, n.config.File.Group = n.zoneDir, size, 64*gib, 107
	return n
}

// bareNode returns a node with its folders, without a zone.
func bareNode(t testing.TB) *node {
	t.Helper()
	needsRoot(t)
	// The path of a socket must be short.
	dir, err := os.MkdirTemp("/tmp", "sgcsi")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, dir: dir, zoneDir: filepath.Join(dir, "zone"), kubelet: filepath.Join(dir, "kubelet")}
	for _, d := range []string{n.zoneDir, n.kubelet} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(n.end)
	n.config.Driver.Name, n.config.Driver.NodeID, n.config.Driver.Version = "stargate.csi.dev", "n1", "test"
	n.config.Driver.DefaultSize, n.config.Driver.ControllerExpand = 32*mib, true
	n.config.Endpoint, n.config.KubeletDir = "unix://"+filepath.Join(dir, "csi.sock"), n.kubelet
	n.config.CallLimit, n.config.StopLimit, n.config.OrphanLimit = patience, time.Minute, time.Minute
	n.config.SnapshotDir = filepath.Join(dir, "snapshots")
	return n
}

// end unmounts everything that the test has left.
func (n *node) end() {
	mounts := n.mounts()
	for i := len(mounts) - 1; i >= 0; i-- {
		if err := unix.Unmount(mounts[i], unix.MNT_DETACH); err != nil {
			n.t.Errorf("unmount %s: %v", mounts[i], err)
		}
	}
	if err := os.RemoveAll(n.dir); err != nil {
		n.t.Error(err)
	}
}

// mounts returns the mounts in the node's folder, in the order of their creation.
func (n *node) mounts() []string {
	n.t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		n.t.Fatal(err)
	}
	var at []string
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], n.dir+"/") {
			at = append(at, f[4])
		}
	}
	return at
}

// shown returns the mounts in kubelet's folder.
func (n *node) shown() []string {
	var at []string
	for _, m := range n.mounts() {
		if strings.HasPrefix(m, n.kubelet+"/") {
			at = append(at, strings.TrimPrefix(m, n.kubelet+"/"))
		}
	}
	return at
}

// rest returns everything that earlier CSI calls have left behind: objects in the zone, snapshots
// outside of the zone, and mounts.
func (n *node) rest() []string {
	n.t.Helper()
	return slices.Concat(n.left(), n.outside(), n.shown())
}

// outside returns the snapshots in their folder.
func (n *node) outside() []string {
	n.t.Helper()
	return filesOf(n.t, n.config.SnapshotDir, ".stargate-snapshots")
}

// filesLeft returns the files of the zone.
func (n *node) filesLeft() []string {
	n.t.Helper()
	files := filesOf(n.t, n.zoneDir, ".stargate-zone")
	return slices.DeleteFunc(slices.Clone(files), func(file string) bool {
		name, ok := strings.CutPrefix(file, ".at-") // the folder of an existing volume
		return ok && slices.Contains(files, name+".stargate")
	})
}

// filesOf returns the files of a folder, without its lock file. It returns none if the folder does
// not exist.
func filesOf(t testing.TB, dir, lock string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != lock {
			names = append(names, e.Name())
		}
	}
	return names
}

// connect connects the clients to the socket.
func (n *node) connect() error {
	n.t.Helper()
	conn, err := grpc.NewClient(n.config.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		n.t.Fatal(err)
	}
	if _, err := csi.NewIdentityClient(conn).Probe(background, &csi.ProbeRequest{}); err != nil {
		conn.Close()
		return err
	}
	n.t.Cleanup(func() { conn.Close() })
	n.IdentityClient, n.ControllerClient, n.NodeClient = csi.NewIdentityClient(conn), csi.NewControllerClient(conn), csi.NewNodeClient(conn)
	return nil
}

// start runs the driver in this process until stop is called, or the test ends.
func (n *node) start() (stop func()) {
	n.t.Helper()
	logger := ktesting.NewLogger(n.t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx, n.config) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			n.t.Errorf("driver: %v", err)
		}
	}
	n.t.Cleanup(stop)
	n.await(done)
	return stop
}

// await waits until the driver answers. If the driver ends instead, the test fails with its
// message. Each try uses its own connection, because gRPC waits a second after a failed connection.
// An accepted connection is no answer yet: a child of a killed driver may still have the socket
// open, until it runs its own program.
func (n *node) await(done <-chan error) {
	n.t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		err := n.connect()
		if err == nil {
			return
		}
		select {
		case err := <-done:
			n.t.Fatalf("the driver has ended: %v", err)
		default:
		}
		if status.Code(err) != codes.Unavailable || time.Now().After(until) {
			n.t.Fatalf("the driver does not answer: %v", err)
		}
	}
}

func capability(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
	}
}

var (
	rwo  = capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)
	rwop = capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)
	rwx  = capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)
	rox  = capability(csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY)
)

func createRequest(name string, size int64) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: size}, VolumeCapabilities: []*csi.VolumeCapability{rwx},
	}
}

// create creates a volume that the test needs.
func (n *node) create(name string, size int64) *csi.Volume {
	n.t.Helper()
	res, err := n.CreateVolume(context.Background(), createRequest(name, size))
	if err != nil {
		n.t.Fatal(err)
	}
	return res.GetVolume()
}

// mounted simulates a report of the module about a volume, because the module reports no volumes in
// a zone of files.
func (n *node) mounted(id, state string) {
	n.t.Helper()
	dir := filepath.Join(n.config.Sysfs, id)
	err := os.MkdirAll(dir, 0o755)
	for name, text := range map[string]string{
		"dev": n.zoneFile(id), "state": state, "slot": "0", "epoch": "volume 12\nacknowledged 9", "journal": "commits 7\nreplays 1", "operations": "", "errors": "",
	} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644)
		}
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) delete(id string) {
	n.t.Helper()
	if _, err := n.DeleteVolume(context.Background(), &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
		n.t.Fatal(err)
	}
}

// staging creates kubelet's staging path like kubelet, and returns it.
func (n *node) staging(id string) string {
	n.t.Helper()
	path := filepath.Join(n.kubelet, "staging-"+id)
	if err := os.MkdirAll(path, 0o750); err != nil {
		n.t.Fatal(err)
	}
	return path
}

func (n *node) stageRequest(id string, c *csi.VolumeCapability) *csi.NodeStageVolumeRequest {
	return &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: n.staging(id), VolumeCapability: c}
}

func (n *node) target(pod string) string { return filepath.Join(n.kubelet, "pod-"+pod) }

func (n *node) publishRequest(id, pod string, c *csi.VolumeCapability, readOnly bool) *csi.NodePublishVolumeRequest {
	return &csi.NodePublishVolumeRequest{
		VolumeId: id, StagingTargetPath: n.staging(id), TargetPath: n.target(pod), VolumeCapability: c, Readonly: readOnly,
	}
}

func (n *node) stage(id string, c *csi.VolumeCapability) {
	n.t.Helper()
	if _, err := n.NodeStageVolume(context.Background(), n.stageRequest(id, c)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) publish(id, pod string, c *csi.VolumeCapability, readOnly bool) {
	n.t.Helper()
	if _, err := n.NodePublishVolume(context.Background(), n.publishRequest(id, pod, c, readOnly)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) unpublish(id, pod string) {
	n.t.Helper()
	if _, err := n.NodeUnpublishVolume(context.Background(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: n.target(pod)}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) unstage(id string) {
	n.t.Helper()
	if _, err := n.NodeUnstageVolume(context.Background(), &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: n.staging(id)}); err != nil {
		n.t.Fatal(err)
	}
}

// wants fails the test unless the call has returned the given code, and a message that contains the
// words.
func wants(t testing.TB, what string, err error, code codes.Code, words ...string) {
	t.Helper()
	s, _ := status.FromError(err)
	if err == nil || s.Code() != code {
		t.Errorf("%s: %v; should be %s", what, err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(s.Message(), w) {
			t.Errorf("%s: says %q, without %q", what, s.Message(), w)
		}
	}
}
