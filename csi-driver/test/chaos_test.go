// SPDX-License-Identifier: Apache-2.0

package test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"stargate/csi-driver/internal/app"
	"stargate/csi-driver/internal/failpoint"
	"stargate/csi-driver/internal/pool"
)

// With these variables in its environment, the test program is a driver that kills itself at a
// step.
const (
	envConfig = "SG_CSI_TEST_DRIVER"
	envDieAt  = "SG_CSI_TEST_DIE_AT"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envConfig) != "":
		os.Exit(beDriver())
	case os.Getenv(envKeeper) != "":
		os.Exit(beKeeper())
	case os.Getenv(envWriter) != "":
		os.Exit(beWriter())
	}
	os.Exit(m.Run())
}

func beDriver() int {
	var config app.Config
	var dieAt int64
	if err := json.Unmarshal([]byte(os.Getenv(envConfig)), &config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	fmt.Sscan(os.Getenv(envDieAt), &dieAt)
	config.Call = func(ctx context.Context) context.Context {
		var reached atomic.Int64
		return failpoint.With(ctx, func(name string) {
			if reached.Add(1) == dieAt {
				fmt.Fprintf(os.Stderr, "dies at step %d: %s\n", dieAt, name)
				syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {} // wait until the signal arrives
			}
		})
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(2)))
	ctx, stop := signal.NotifyContext(klog.NewContext(context.Background(), logger), syscall.SIGTERM)
	defer stop()
	if err := app.Run(ctx, config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// patience is the limit on a busy machine.
const patience = 10 * time.Minute

// process is a driver in a separate process.
type process struct {
	n    *node
	cmd  *exec.Cmd
	log  strings.Builder
	done chan error
}

func (n *node) run(dieAt int) *process {
	n.t.Helper()
	text, err := json.Marshal(n.config)
	if err != nil {
		n.t.Fatal(err)
	}
	p := &process{n: n, cmd: exec.Command(os.Args[0]), done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), envConfig+"="+string(text), fmt.Sprintf("%s=%d", envDieAt, dieAt))
	p.cmd.Stderr = &p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait(); close(p.done) }()
	n.await(p.done)
	return p
}

// stop stops the driver with the same signal as kubelet.
func (p *process) stop() {
	p.n.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.n.t.Error(err)
	}
	select {
	case err := <-p.done:
		if err != nil {
			p.n.t.Errorf("the driver ends by %v:\n%s", err, p.log.String())
		}
	case <-time.After(patience):
		p.cmd.Process.Kill()
		p.n.t.Errorf("the driver does not end:\n%s", p.log.String())
	}
}

// dead waits for the driver's death, and returns the step at which it died.
func (p *process) dead() string {
	p.n.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.n.t.Fatal("a call reports that the driver has ended, but the driver still runs")
	}
	_, at, _ := strings.Cut(p.log.String(), "dies at step ")
	at, _, _ = strings.Cut(at, "\n")
	return at
}

// call is one call in a volume's life.
type call struct {
	name string
	do   func(ctx context.Context) error
}

func (c call) inTime() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.do(ctx)
}

// again repeats the call, like kubelet and the provisioner, while the code is Aborted. The code is
// Aborted while a tool of the killed driver still works, and while the driver removes incomplete
// objects. It is also Aborted while a tool starts: until the child runs its program, it has the
// driver's open files, among them files of the mount.
func (c call) again() error {
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		if err := c.inTime(); status.Code(err) != codes.Aborted || time.Now().After(end) {
			return err
		}
	}
}

// inlineID is an id like those that kubelet creates for inline volumes.
func inlineID(volume string) string { return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(volume))) }

func life(n *node, volume string) []call {
	pod := &csi.NodePublishVolumeRequest{
		VolumeId: inlineID(volume), TargetPath: n.target("inline"), VolumeCapability: rwo,
		VolumeContext: map[string]string{"csi.storage.k8s.io/ephemeral": "true", "size": "16Mi"},
	}
	return []call{
		{"create", func(ctx context.Context) error {
			_, err := n.CreateVolume(ctx, createRequest(volume, 32*mib))
			return err
		}},
		{"stage", func(ctx context.Context) error {
			_, err := n.NodeStageVolume(ctx, n.stageRequest(volume, rwx))
			return err
		}},
		{"publish", func(ctx context.Context) error {
			_, err := n.NodePublishVolume(ctx, n.publishRequest(volume, "a", rwx, false))
			return err
		}},
		{"publish read-only", func(ctx context.Context) error {
			_, err := n.NodePublishVolume(ctx, n.publishRequest(volume, "b", rwx, true))
			return err
		}},
		{"expand", func(ctx context.Context) error {
			res, err := n.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
				VolumeId: volume, VolumePath: n.target("a"), CapacityRange: &csi.CapacityRange{RequiredBytes: 64 * mib},
			})
			if err == nil && res.GetCapacityBytes() != 64*mib {
				return fmt.Errorf("has %d bytes", res.GetCapacityBytes())
			}
			return err
		}},
		n.snapshotCall("snapshot", volume, volume, "zone"),
		n.snapshotCall("snapshot outside", volume+"-out", volume, "folder"),
		{"copy", func(ctx context.Context) error {
			res, err := n.CreateVolume(ctx, copyRequest(volume+"-copy", 64*mib, ofSnapshot(pool.SnapshotName(volume))))
			if err == nil && res.GetVolume().GetCapacityBytes() != 64*mib {
				return fmt.Errorf("the copy has %d bytes", res.GetVolume().GetCapacityBytes())
			}
			return err
		}},
		n.deleteSnapshotCall("delete snapshot", volume),
		{"delete copy", func(ctx context.Context) error {
			_, err := n.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume + "-copy"})
			return err
		}},
		{"copy of what is outside", func(ctx context.Context) error {
			_, err := n.CreateVolume(ctx, copyRequest(volume+"-copy", 0, ofSnapshot(pool.SnapshotName(volume+"-out"))))
			return err
		}},
		n.deleteSnapshotCall("delete snapshot outside", volume+"-out"),
		{"delete that copy", func(ctx context.Context) error {
			_, err := n.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume + "-copy"})
			return err
		}},
		{"publish inline", func(ctx context.Context) error {
			_, err := n.NodePublishVolume(ctx, pod)
			return err
		}},
		{"unpublish inline", func(ctx context.Context) error {
			_, err := n.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: pod.VolumeId, TargetPath: pod.TargetPath})
			return err
		}},
		{"unpublish read-only", func(ctx context.Context) error {
			_, err := n.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: volume, TargetPath: n.target("b")})
			return err
		}},
		{"unpublish", func(ctx context.Context) error {
			_, err := n.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: volume, TargetPath: n.target("a")})
			return err
		}},
		{"unstage", func(ctx context.Context) error {
			_, err := n.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: volume, StagingTargetPath: n.staging(volume)})
			return err
		}},
		{"delete", func(ctx context.Context) error {
			_, err := n.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume})
			return err
		}},
	}
}

func (n *node) snapshotCall(what, name, source, target string) call {
	return call{what, func(ctx context.Context) error {
		_, err := n.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{
			Name: name, SourceVolumeId: source, Parameters: map[string]string{"snapshotTarget": target},
		})
		return err
	}}
}

func (n *node) deleteSnapshotCall(what, name string) call {
	return call{what, func(ctx context.Context) error {
		_, err := n.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: pool.SnapshotName(name)})
		return err
	}}
}

// filesSound checks the files that a killed driver has left, before the test repeats a call.
func (n *node) filesSound(when string) {
	n.t.Helper()
	files := n.left()
	for _, f := range files {
		if of, ok := strings.CutPrefix(f, ".from-"); ok && slices.Contains(files, of+".stargate") {
			continue
		}
		if !strings.HasSuffix(f, ".stargate") && !strings.HasSuffix(f, ".snapshot") {
			n.t.Errorf("%s: the zone has %s", when, f)
			continue
		}
		out, err := exec.Command(filepath.Join(n.config.ToolsDir, "fsck.stargatefs"), "-n", filepath.Join(n.zoneDir, f)).CombinedOutput()
		if err != nil {
			n.t.Errorf("%s: %s: %v: %s", when, f, err, out)
		}
	}
}

// filesWritable fails if a pod can write to a path at which its data would be lost.
func (n *node) filesWritable(when string) {
	n.t.Helper()
	for _, pod := range []string{"a", "b", "inline"} {
		if err := os.WriteFile(filepath.Join(n.target(pod), "lost"), nil, 0o600); err == nil {
			n.t.Errorf("%s: a pod can write to the directory outside the volume", when)
		}
	}
	if f, err := os.OpenFile(filepath.Join(n.target("b"), ".stargate", "region"), os.O_RDWR, 0); err == nil {
		f.Close()
		n.t.Errorf("%s: a read-only pod can write to the volume", when)
	}
}

// The test kills the driver at each step of each call in a volume's life, one step at a time. After
// a restart, the driver continues from the state on the node: the repeated call succeeds, and
// nothing is left.
func TestKillAtEachStep(t *testing.T) {
	const least = 35
	deathAtEachStep(newNode(t, gib, "512m"), least)
}

func deathAtEachStep(n *node, least int) {
	n.t.Helper()
	met := map[string]bool{}
	for at := 1; ; at++ {
		before := len(met)
		n.lifeWithDeaths(at, met)
		if left := n.rest(); len(left) > 0 {
			n.t.Fatalf("deaths at step %d: left behind: %v", at, left)
		}
		if len(met) == before {
			break
		}
	}
	if len(met) < least {
		n.t.Errorf("only %d steps, and at least %d are expected: %v", len(met), least, met)
	}
	fmt.Println(len(met), "checks")
}

// lifeWithDeaths runs a volume's life. It kills the driver at the given step of each call: once in
// the first call, and once in a repeated call after success.
func (n *node) lifeWithDeaths(at int, met map[string]bool) {
	n.t.Helper()
	p := n.run(at)
	for _, c := range life(n, fmt.Sprintf("v-%d", at)) {
		died := ""
		for range 2 {
			err := c.again()
			if status.Code(err) == codes.Unavailable {
				died = p.dead() + " of " + c.name
				met[died] = true
				p = n.run(0)
				n.sound(died)
				err = c.again()
			}
			if err != nil {
				n.t.Fatalf("death at %q: %s: %v\n%s", died, c.name, err, p.log.String())
			}
		}
		if c.name == "publish inline" {
			n.writable(died)
		}
		if died != "" {
			p.stop()
			p = n.run(at)
		}
	}
	p.stop()
}

// The test kills the driver at random times, also while its tools run. The tools continue after the
// driver's death.
func TestKillAtAnyTime(t *testing.T) {
	deathAtAnyTime(newNode(t, gib, "512m"), 12, time.Second)
}

func deathAtAnyTime(n *node, rounds int, within time.Duration) {
	t := n.t
	t.Helper()
	seed := time.Now().UnixNano()
	random := rand.New(rand.NewSource(seed))
	for round := 0; round < rounds; round++ {
		p := n.run(0)
		timer := time.AfterFunc(time.Duration(random.Int63n(int64(within))), func() { p.cmd.Process.Kill() })
		dead := false
		for _, c := range life(n, fmt.Sprintf("r-%d", round)) {
			err := c.again()
			for try := 0; status.Code(err) == codes.Unavailable && !dead && try < 1; try++ {
				dead = true
				p.dead()
				p = n.run(0)
				n.sound(c.name)
				err = c.again()
			}
			if err != nil {
				t.Fatalf("seed %d: round %d: %s: %v\n%s", seed, round, c.name, err, p.log.String())
			}
		}
		timer.Stop()
		if !dead {
			p.cmd.Process.Kill()
			p.dead()
		} else {
			p.stop()
		}
		if left := n.rest(); len(left) > 0 {
			t.Fatalf("seed %d: round %d: left behind: %v", seed, round, left)
		}
	}
}
