// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stargate/csi-driver/internal/csi/driver"
	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/grpcserver"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/mounts/mountstest"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/pool/pooltest"
	"stargate/csi-driver/internal/publish"
)

const mib = int64(1) << 20

// world is a node whose zone and mounts are simulated in this process, without root, tools and
// kernel mounts.
type world struct {
	t       *testing.T
	dir     string
	kubelet string
	zone    *pooltest.Zone
	table   *mountstest.Table
	driver  *driver.Driver
}

func newWorld(t *testing.T, size int64) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "sgdrv") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{
		t: t, dir: dir, kubelet: filepath.Join(dir, "kubelet"),
		zone: pooltest.New(pooltest.Config{Base: 64 * pool.Gigabyte, Size: size}), table: mountstest.New(),
	}
	if err := os.Mkdir(w.kubelet, 0o755); err != nil {
		t.Fatal(err)
	}
	w.driver = w.with(publish.NewFile(mounts.On(w.table), w.zone))
	return w
}

// with returns a driver that mounts volumes by the given Shower.
func (w *world) with(show publish.Presenter) *driver.Driver {
	w.t.Helper()
	folder, err := mounts.OpenFolder(w.kubelet)
	if err != nil {
		w.t.Fatal(err)
	}
	config := request.Config{Name: "stargate.csi.dev", Version: "test", NodeID: "n1", DefaultSize: 32 * mib, ControllerExpand: true}
	return driver.New(config, w.zone, show, w.module(), folder)
}

// module returns a module whose sysfs is a folder. In this folder, volumes' paths replace the
// numbers of their devices.
func (w *world) module() *kernelmodule.Module {
	return kernelmodule.NewFor(filepath.Join(w.dir, "sysfs"), func(path string) string { return path })
}

// serve runs the driver at a socket, like the real program, until the test ends.
func (w *world) serve() (endpoint string) {
	w.t.Helper()
	endpoint = "unix://" + filepath.Join(w.dir, "csi.sock")
	l, err := grpcserver.Listen(endpoint)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := grpcserver.New(ctx, grpcserver.Config{CallLimit: time.Minute, StopLimit: time.Second, Status: grpcstatus.Of}, w.driver.Register)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	return endpoint
}

// left lists all objects: in the zone, among the mounts, and in kubelet's folder.
func (w *world) left() []string {
	w.t.Helper()
	left := w.zone.Left()
	for _, point := range w.table.Shown() {
		left = append(left, "mount "+strings.TrimPrefix(point, w.kubelet+"/"))
	}
	entries, err := os.ReadDir(w.kubelet)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		left = append(append(left, folder+e.Name()), w.described(e.Name())...)
	}
	return left
}

const folder = "folder "

// described returns the reported size of the volume that is mounted at a path, or an empty string.
func (w *world) described(name string) []string {
	text, err := os.ReadFile(filepath.Join(w.kubelet, name, ".stargate", "volume.json"))
	if err != nil {
		return nil
	}
	var d struct{ Size int64 }
	if err := json.Unmarshal(text, &d); err != nil {
		w.t.Error(err)
	}
	return []string{fmt.Sprintf("in %s a volume with %d bytes", name, d.Size)}
}

func (w *world) path(name string) string { return filepath.Join(w.kubelet, name) }
