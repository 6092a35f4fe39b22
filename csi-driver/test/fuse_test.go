// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"stargate/csi-driver/internal/grpcserver"
	"stargate/csi-driver/internal/helmhooks"
	"stargate/csi-driver/internal/keeper"
)

// With these variables in its environment, the test program is a keeper of mounts, or a pod that
// writes.
const (
	envKeeper = "SG_CSI_TEST_KEEPER"
	envWriter = "SG_CSI_TEST_WRITER"
)

// keeperConfig is the configuration of a keeper in a separate process.
type keeperConfig struct{ Endpoint, Dir, Program string }

func beKeeper() int {
	var c keeperConfig
	if err := json.Unmarshal([]byte(os.Getenv(envKeeper)), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(4), textlogger.Output(os.Stderr)))
	ctx, stop := signal.NotifyContext(klog.NewContext(context.Background(), logger), syscall.SIGTERM)
	defer stop()
	l, err := grpcserver.Listen(c.Endpoint)
	if err == nil {
		run := keeper.Program{Path: c.Program, Memory: 512 << 20, Workers: 32, Log: logger}.Run
		err = keeper.New(keeper.Config{Dir: c.Dir, Release: "test", Run: run}, logger).Serve(ctx, l)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// keeping is a keeper in a separate process.
type keeping struct {
	n   *node
	cmd *exec.Cmd
	log bytes.Buffer
}

// keep starts a keeper, which the node's driver uses.
func (n *node) keep() *keeping {
	n.t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		needs(n.t, err, "FUSE")
	}
	n.config.Keeper = "unix://" + filepath.Join(n.dir, "keeper.sock")
	text, err := json.Marshal(keeperConfig{n.config.Keeper, n.zoneDir, filepath.Join(n.config.ToolsDir, "stargatefs-fuse")})
	if err != nil {
		n.t.Fatal(err)
	}
	k := &keeping{n: n, cmd: exec.Command(os.Args[0])}
	k.cmd.Env = append(os.Environ(), envKeeper+"="+string(text))
	k.cmd.Stderr = &k.log
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := k.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		k.kill()
		if n.t.Failed() {
			n.t.Logf("the keeper's log:\n%s", k.log.String())
		}
	})
	n.soon("the keeper answers", func() bool { return keeper.Check(background, n.config.Keeper) == nil })
	return k
}

func (k *keeping) kill() {
	if k.cmd.ProcessState == nil {
		_ = k.cmd.Process.Kill()
		_ = k.cmd.Wait()
	}
}

// soon waits until a condition holds.
func (n *node) soon(what string, is func() bool) {
	n.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("not within two minutes: %s", what)
		}
	}
}

// servers returns the processes that serve files of the node's zone.
func (n *node) servers() (pids []int) {
	n.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		n.t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bytes.Contains(line, []byte("--kept")) && bytes.Contains(line, []byte(n.zoneDir+"/")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// server returns the only server.
func (n *node) server() int {
	n.t.Helper()
	all := n.servers()
	if len(all) != 1 {
		n.t.Fatalf("%d servers run: %v", len(all), all)
	}
	return all[0]
}

// give makes a volume, stages it, and publishes it to pods.
func (n *node) give(id string, size int64, pods ...string) {
	n.t.Helper()
	n.create(id, size)
	n.stage(id, rwx)
	for _, pod := range pods {
		n.publish(id, pod, rwx, false)
	}
}

// take ends what give has begun, except the volume.
func (n *node) take(id string, pods ...string) {
	n.t.Helper()
	for _, pod := range pods {
		n.unpublish(id, pod)
	}
	n.unstage(id)
}

// inPod returns the path of a file in a pod.
func (n *node) inPod(pod, file string) string { return filepath.Join(n.target(pod), file) }

func (n *node) store(pod, file, text string) {
	n.t.Helper()
	if err := os.WriteFile(n.inPod(pod, file), []byte(text), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) stored(pod, file, text string) {
	n.t.Helper()
	if got, err := os.ReadFile(n.inPod(pod, file)); err != nil || string(got) != text {
		n.t.Errorf("%s of pod %s: %q, %v; should be %q", file, pod, got, err, text)
	}
}

// as runs a command as a given user.
func as(uid, gid uint32, words ...string) error {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// Pods in a zone of files have the volume mounted, like pods with reserved memory. They share its
// files with each other and with other systems. At the end, nothing is left.
func TestFUSEPods(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.keep()
	n.start()
	n.give("v", 32*mib)
	if all := n.servers(); len(all) != 0 {
		t.Errorf("no pod has the volume yet, but there are servers: %v", all)
	}
	group := capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)
	group.GetMount().VolumeMountGroup = "2000"
	group.GetMount().MountFlags = []string{"noatime", "map=walk", "errors=continue", "context=system_u:object_r:container_file_t:s0"}
	n.publish("v", "a", group, false)
	n.publish("v", "b", group, false)
	n.publish("v", "r", group, true)
	n.publish("v", "a", group, false) // a repeated call
	if err := os.Chmod(n.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := as(1000, 2000, "sh", "-c", "echo 'by user 1000' >"+n.inPod("a", "f")); err != nil {
		t.Errorf("a pod that does not run as root cannot write: %v", err)
	}
	if err := as(1001, 2001, "sh", "-c", "echo no >"+n.inPod("a", "g")); err == nil {
		t.Error("a user of another group can write")
	}
	n.stored("b", "f", "by user 1000\n")
	n.stored("r", "f", "by user 1000\n")
	if err := os.WriteFile(n.inPod("r", "f"), nil, 0o644); !errors.Is(err, unix.EROFS) {
		t.Errorf("a read-only pod writes: %v", err)
	}
	for _, pod := range []string{"a", "b", "r"} {
		options := n.optionsOf(n.target(pod))
		if !slices.Contains(options, "nosuid") || !slices.Contains(options, "nodev") || slices.Contains(options, "ro") != (pod == "r") {
			t.Errorf("pod %s has the options %v", pod, options)
		}
		if _, err := os.Lstat(n.inPod(pod, ".stargate")); err == nil {
			t.Errorf("pod %s sees the volume's memory", pod)
		}
	}
	if _, err := helmhooks.Try(n.target("b")); err != nil {
		t.Errorf("helm test: %v", err)
	}
	pid := n.server()
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil || !bytes.Contains(limits, []byte(fmt.Sprint(512*mib))) {
		t.Errorf("the server's memory has no limit: %v\n%s", err, limits)
	}
	n.another("v", pid)
	// // The volume grows.
	size := func() int64 {
		var fs unix.Statfs_t
		if err := unix.Statfs(n.target("b"), &fs); err != nil {
			t.Fatal(err)
		}
		return int64(fs.Blocks) * fs.Bsize
	}
	before := size()
	if _, err := n.NodeExpandVolume(background, &csi.NodeExpandVolumeRequest{
		VolumeId: "v", VolumePath: n.target("a"), CapacityRange: &csi.CapacityRange{RequiredBytes: 64 * mib},
	}); err != nil {
		t.Fatal(err)
	}
	n.soon("the pods see the new size", func() bool { return size() >= before+30*mib })
	if err := os.WriteFile(n.inPod("b", "large"), make([]byte, 40*mib), 0o644); err != nil {
		t.Errorf("a pod cannot use the new room: %v", err)
	}
	stats, err := n.NodeGetVolumeStats(background, &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: n.target("b")})
	if err != nil || len(stats.GetUsage()) != 2 || stats.GetUsage()[0].GetUsed() < 40*mib || stats.GetUsage()[0].GetTotal() < 60*mib {
		t.Errorf("stats: %v, %v", stats, err)
	}
	// When the last pod ends, the server ends. The next pod finds the files.
	open, err := os.Open(n.inPod("r", "f"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.NodeUnpublishVolume(background, &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: n.target("r")})
	wants(t, "a file is open", err, codes.Aborted)
	open.Close()
	for _, pod := range []string{"a", "b", "r"} {
		if len(n.servers()) != 1 {
			t.Errorf("%d servers", len(n.servers()))
		}
		n.unpublish("v", pod)
	}
	if all := n.servers(); len(all) != 0 {
		t.Errorf("no pod has the volume any more, and there are servers: %v", all)
	}
	if shown := n.shown(); !slices.Equal(shown, []string{"staging-v"}) {
		t.Errorf("left is mounted %v", shown)
	}
	n.publish("v", "c", rwop, false)
	_, err = n.NodePublishVolume(background, n.publishRequest("v", "d", rwop, false))
	wants(t, "a second pod", err, codes.FailedPrecondition, n.target("c"))
	n.stored("c", "f", "by user 1000\n")
	_, err = n.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: "v"})
	wants(t, "deleting what is mounted", err, codes.FailedPrecondition)
	n.take("v", "c")
	n.delete("v")
	if left := n.rest(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Another mount namespace may have copies of pods' mounts that remain after an unmount, as in a
// container that has kubelet's folder without propagation. The servers still end.
func TestFUSEPodsCopied(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.keep()
	n.start()
	n.give("v", 32*mib, "a")
	other := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", "echo; exec sleep 600")
	other.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := other.StdoutPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	n.unpublish("v", "a")
	if all := n.servers(); len(all) != 0 {
		t.Errorf("no pod has the volume any more, and there are servers: %v", all)
	}
	n.unstage("v")
	n.delete("v")
}

// another starts a second system, and checks that pods immediately see its files, and the reverse.
func (n *node) another(id string, pid int) {
	n.t.Helper()
	at := filepath.Join(n.dir, "another")
	if err := os.MkdirAll(at, 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := exec.Command(filepath.Join(n.config.ToolsDir, "stargatefs-fuse"), n.zoneFile(id), at).Run(); err != nil {
		n.t.Fatalf("a second system: %v", err)
	}
	if err := os.WriteFile(filepath.Join(at, "theirs"), []byte("of a VM"), 0o644); err != nil {
		n.t.Error(err)
	}
	n.stored("b", "theirs", "of a VM")
	n.store("a", "ours", "of a pod")
	if got, err := os.ReadFile(filepath.Join(at, "ours")); err != nil || string(got) != "of a pod" {
		n.t.Errorf("the other system reads %q, %v", got, err)
	}
	if err := unix.Unmount(at, 0); err != nil {
		n.t.Error(err)
	}
	if n.server() != pid {
		n.t.Error("the pods' server is a different process now")
	}
}

// optionsOf returns the options of the mount at a path.
func (n *node) optionsOf(path string) []string {
	n.t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		n.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 5 && f[4] == path {
			return strings.Split(f[5], ",")
		}
	}
	n.t.Fatalf("nothing is mounted at %s", path)
	return nil
}

// record returns the bytes of one write of a pod. They repeat the record's number, so that a torn
// record can be detected.
const recordBytes = 4096

func record(n uint64) []byte {
	return bytes.Repeat(binary.LittleEndian.AppendUint64(nil, n), recordBytes/8)
}

// beWriter is the main function of a pod's process. It appends records to a file, creates and
// removes names, and prints the number of each complete record. It exits at any error.
func beWriter() int {
	dir := os.Getenv(envWriter)
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "the pod fails:", err)
		return 1
	}
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fail(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return fail(err)
	}
	for i := uint64(0); ; i++ {
		if _, err := f.Write(record(i)); err != nil {
			return fail(err)
		}
		name := filepath.Join(dir, fmt.Sprintf("name-%d", i))
		if err := os.WriteFile(name, record(i), 0o644); err != nil {
			return fail(err)
		}
		if i > 0 {
			old := filepath.Join(dir, fmt.Sprintf("name-%d", i-1))
			if i%2 == 0 {
				err = os.Remove(old)
			} else {
				err = os.Rename(old, filepath.Join(dir, "renamed"))
			}
			if err != nil {
				return fail(err)
			}
		}
		got := make([]byte, recordBytes)
		if _, err := f.ReadAt(got, int64(i)*recordBytes); err != nil || !bytes.Equal(got, record(i)) {
			return fail(fmt.Errorf("record %d differs from the written record: %w", i, err))
		}
		fmt.Println(i)
		if i >= 12000 { // 47 MiB
			return 0
		}
	}
}

// writer is such a process, with the last record that it has completed.
type writer struct {
	n    *node
	cmd  *exec.Cmd
	said bytes.Buffer
	last chan uint64 // holds only the latest number
	done chan error
}

func (n *node) write(pod string) *writer {
	n.t.Helper()
	w := &writer{n: n, cmd: exec.Command(os.Args[0]), last: make(chan uint64, 1), done: make(chan error, 1)}
	w.cmd.Env = append(os.Environ(), envWriter+"="+n.target(pod))
	w.cmd.Stderr = &w.said
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			i, _ := strconv.ParseUint(lines.Text(), 10, 64)
			select {
			case <-w.last:
			default:
			}
			w.last <- i
		}
		w.done <- w.cmd.Wait()
	}()
	return w
}

// further waits until the process has completed more records, and returns the latest.
func (w *writer) further(by uint64) uint64 {
	w.n.t.Helper()
	limit := time.After(2 * time.Minute)
	for begin, first := uint64(0), true; ; first = false {
		select {
		case i := <-w.last:
			if first {
				begin = i
			}
			if i >= begin+by {
				return i
			}
		case err := <-w.done:
			w.n.t.Fatalf("the pod's process has ended: %v: %s", err, w.said.String())
		case <-limit:
			w.n.t.Fatal("the pod's process waits for two minutes")
		}
	}
}

// stop kills the process, and checks each record that it has completed.
func (w *writer) stop(pod string) {
	w.n.t.Helper()
	last := w.further(1)
	_ = w.cmd.Process.Kill()
	<-w.done
	f, err := os.Open(w.n.inPod(pod, "log"))
	if err != nil {
		w.n.t.Fatal(err)
	}
	defer f.Close()
	got := make([]byte, recordBytes)
	for i := uint64(0); i <= last; i++ {
		if _, err := io.ReadFull(f, got); err != nil || !bytes.Equal(got, record(i)) {
			w.n.t.Fatalf("record %d of %d is lost: %v", i, last, err)
		}
	}
}

// If a server is killed under load, the keeper replaces it. No call fails, and no complete record
// is lost.
func TestFUSEServerKilled(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.keep()
	n.start()
	n.give("v", 128*mib, "a", "b")
	w := n.write("a")
	for i := range 6 {
		w.further(50)
		pid, sig := n.server(), syscall.SIGKILL
		if i%2 == 1 {
			sig = syscall.SIGTERM // only the server gets the signal: the keeper's mount has not ended
		}
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatal(err)
		}
		n.soon("another server runs", func() bool { all := n.servers(); return len(all) == 1 && all[0] != pid })
		w.further(50)
	}
	w.stop("b")
	n.take("v", "a", "b")
	n.filesSound("after killed servers")
	n.delete("v")
}

// No mount ends when only the driver or only the keeper ends. Mounts end when both end at the same
// time.
func TestFUSEProcessesKilled(t *testing.T) {
	n := newNode(t, gib, "512m")
	k := n.keep()
	p := n.run(0)
	n.give("v", 128*mib, "a")
	pid := n.server()
	w := n.write("a")
	w.further(20)
	// The test kills the driver, and starts another driver.
	_ = p.cmd.Process.Kill()
	<-p.done
	w.further(50)
	p = n.run(0)
	n.publish("v", "b", rwx, false)
	if n.server() != pid {
		t.Error("the new driver has started another server")
	}
	w.further(20)
	// The test kills the keeper, and starts another keeper. The present driver has not started
	// the server, but has the server's descriptors.
	k.kill()
	n.soon("its server has ended", func() bool { return len(n.servers()) == 0 })
	k = n.keep()
	w.further(50)
	n.publish("v", "c", rwx, false)
	if again := n.server(); again == pid {
		t.Error("the server has survived its keeper")
	}
	// The same holds for a keeper that is stopped by a signal.
	_ = k.cmd.Process.Signal(syscall.SIGTERM)
	_ = k.cmd.Wait()
	k = n.keep()
	w.further(50)
	w.stop("c")
	// Both end at the same time. The pods' calls end, and a new pod gets a new mount.
	_ = p.cmd.Process.Kill()
	<-p.done
	k.kill()
	n.soon("calls end", func() bool { _, err := os.Stat(n.inPod("a", "log")); return errors.Is(err, unix.ENOTCONN) })
	n.keep()
	p = n.run(0)
	n.publish("v", "d", rwx, false)
	if _, err := os.Stat(n.inPod("d", "log")); err != nil {
		t.Error(err)
	}
	n.take("v", "a", "b", "c", "d")
	n.delete("v")
	if left := n.rest(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	p.stop()
}

// Without a keeper, a pod waits, and the error names the keeper.
func TestFUSEWithoutKeeper(t *testing.T) {
	n := newNode(t, gib, "512m")
	k := n.keep()
	k.kill()
	n.start()
	n.give("v", 32*mib)
	_, err := n.NodePublishVolume(background, n.publishRequest("v", "a", rwx, false))
	wants(t, "no keeper", err, codes.Unavailable, "keeper")
	if shown := n.shown(); !slices.Equal(shown, []string{"staging-v"}) {
		t.Errorf("left is mounted %v", shown)
	}
	k = n.keep()
	n.publish("v", "a", rwx, false)
	n.store("a", "f", "text")
	// The keeper ends while a pod has the volume. FUSE has no timeout, so no call of the driver
	// may access the mount.
	k.kill()
	n.soon("its server has ended", func() bool { return len(n.servers()) == 0 })
	ctx, cancel := context.WithTimeout(background, 20*time.Second)
	defer cancel()
	group := capability(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER)
	group.GetMount().VolumeMountGroup = "2000"
	_, err = n.NodePublishVolume(ctx, n.publishRequest("v", "b", group, false))
	wants(t, "no keeper any more", err, codes.Unavailable, "keeper")
	if _, err = n.NodePublishVolume(ctx, n.publishRequest("v", "a", rwx, false)); err != nil {
		t.Errorf("the repeated call of the first pod: %v", err)
	}
	for _, pod := range []string{"b", "a"} {
		if _, err = n.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: n.target(pod)}); err != nil {
			t.Fatalf("pod %s ends without a keeper: %v", pod, err)
		}
	}
	if shown := n.shown(); !slices.Equal(shown, []string{"staging-v"}) {
		t.Errorf("left is mounted %v", shown)
	}
	n.keep()
	n.publish("v", "b", group, false)
	n.stored("b", "f", "text")
	n.take("v", "b")
	n.delete("v")
}

// This test runs csi-sanity with mounts by FUSE.
func TestFUSESanity(t *testing.T) {
	n := newNode(t, 2*gib, "1g")
	n.keep()
	n.start()
	n.sanity()
	if all := n.servers(); len(all) != 0 {
		t.Errorf("left running: %v", all)
	}
}

// The test kills the driver at each step of each call of a volume's life, with mounts by FUSE. The
// repeated call succeeds, and no mount, no server and no system of the volume is left.
func TestFUSEKillAtEachStep(t *testing.T) {
	const least = 40
	n := newNode(t, gib, "512m")
	n.keep()
	n.sound = func(when string) {
		if len(n.servers()) == 0 { // fsck checks only volumes without systems
			n.filesSound(when)
		}
	}
	n.writable = func(when string) {
		n.t.Helper()
		for _, pod := range []string{"a", "inline"} {
			n.store(pod, "file", when)
			n.stored(pod, "file", when)
		}
		if err := os.WriteFile(n.inPod("b", "file"), nil, 0o644); !errors.Is(err, unix.EROFS) {
			n.t.Errorf("%s: a read-only pod writes: %v", when, err)
		}
	}
	deathAtEachStep(n, least)
	if all := n.servers(); len(all) != 0 {
		t.Errorf("left running: %v", all)
	}
}
