// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/pool/pooltest"
	"stargate/csi-driver/internal/stargatectl"
)

// condition is the volume condition of CSI 1.3 to 1.12, which kubelets of that time read from field
// 2.
type condition struct {
	there, abnormal bool
	message         string
}

func conditionIn(t *testing.T, m proto.Message) condition {
	t.Helper()
	text, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var c condition
	for outer := range fields(t, text) {
		if outer.number != 2 {
			continue
		}
		c.there = true
		for inner := range fields(t, outer.bytes) {
			switch inner.number {
			case 1:
				c.abnormal = inner.varint != 0
			case 2:
				c.message = string(inner.bytes)
			}
		}
	}
	return c
}

type field struct {
	number protowire.Number
	varint uint64
	bytes  []byte
}

func fields(t *testing.T, text []byte) func(func(field) bool) {
	return func(yield func(field) bool) {
		for len(text) > 0 {
			number, kind, n := protowire.ConsumeTag(text)
			f, length := field{number: number}, 0
			switch kind {
			case protowire.VarintType:
				f.varint, length = protowire.ConsumeVarint(text[max(n, 0):])
			case protowire.BytesType:
				f.bytes, length = protowire.ConsumeBytes(text[max(n, 0):])
			}
			if n < 0 || length <= 0 {
				t.Fatalf("%x is no message", text)
			}
			if text = text[n+length:]; !yield(f) {
				return
			}
		}
	}
}

// conditions returns all answers that have the condition of volume v.
func (w *world) conditions(c *grpc.ClientConn) map[string]condition {
	w.t.Helper()
	ctx := context.Background()
	stats, err := csi.NewNodeClient(c).NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: w.path("staging")})
	w.must(err)
	got, err := csi.NewControllerClient(c).ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: "v"})
	w.must(err)
	all, err := csi.NewControllerClient(c).ListVolumes(ctx, &csi.ListVolumesRequest{})
	w.must(err)
	if len(all.GetEntries()) != 1 {
		w.t.Fatalf("ListVolumes returns %v", all)
	}
	return map[string]condition{
		"stats": conditionIn(w.t, stats), "get": conditionIn(w.t, got.GetStatus()), "list": conditionIn(w.t, all.GetEntries()[0].GetStatus()),
	}
}

func (w *world) connect() *grpc.ClientConn {
	w.t.Helper()
	c, err := grpc.NewClient(w.serve(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	w.must(err)
	w.t.Cleanup(func() { c.Close() })
	return c
}

// shutDown makes the module report that this node's mount of v was fenced.
func (w *world) shutDown() {
	w.t.Helper()
	v, err := w.zone.Get(context.Background(), "v")
	w.must(err)
	w.shutDownOn(v.Path)
}

// shutDownOn makes the module report this for the mount of a given device. Members of the volume on
// that device have written v's UUID into it.
func (w *world) shutDownOn(device string) {
	w.t.Helper()
	v, err := w.zone.Get(context.Background(), "v")
	w.must(err)
	dir := filepath.Join(w.dir, "sysfs", "dm-0")
	w.must(os.MkdirAll(dir, 0o755))
	for name, text := range map[string]string{"dev": device, "uuid": v.UUID, "state": "shut down", "slot": "0", "epoch": "", "operations": "", "journal": "", "errors": ""} {
		w.must(os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o644))
	}
}

// The driver declares the volume condition by its old numbers, for kubelets and monitors from
// before CSI 1.13.
func TestConditionIsClaimed(t *testing.T) {
	c := newWorld(t, pool.Gigabyte).connect()
	node, err := csi.NewNodeClient(c).NodeGetCapabilities(context.Background(), &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	controller, err := csi.NewControllerClient(c).ControllerGetCapabilities(context.Background(), &csi.ControllerGetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	claimed := 0
	for _, c := range node.GetCapabilities() {
		if c.GetRpc().GetType() == 4 {
			claimed++
		}
	}
	for _, c := range controller.GetCapabilities() {
		if c.GetRpc().GetType() == 11 {
			claimed++
		}
	}
	if claimed != 2 {
		t.Errorf("claimed are\n%v\n%v", node, controller)
	}
}

// Each answer about a volume has the volume's condition. A silent system does not change the
// condition. The answer about an unreadable volume has its condition, but not its usage.
func TestCondition(t *testing.T) {
	for what, c := range map[string]struct {
		happens  func(*world)
		abnormal bool
		words    string
	}{
		"well":                   {func(*world) {}, false, ""},
		"used":                   {func(w *world) { w.zone.Use("v", stargatectl.System{Name: "vm", State: "alive"}) }, false, ""},
		"a heartbeat is late":    {func(w *world) { w.zone.Use("v", stargatectl.System{Name: "vm", State: "silent"}) }, false, ""},
		"damaged":                {func(w *world) { w.zone.Damage("v", "its superblock is torn") }, true, "Damaged: its superblock is torn"},
		"damage was met":         {func(w *world) { w.zone.MeetErrors("v", 3) }, true, "ErrorsFound: the file system has found damage 3 times"},
		"the mount is shut down": {(*world).shutDown, true, "fenced this node, or essential pages of the volume are bad"},
		"another one's is":       {func(w *world) { w.shutDownOn("/memory/other") }, false, ""},
		"both":                   {func(w *world) { w.shutDown(); w.zone.MeetErrors("v", 3) }, true, "; ErrorsFound: "},
	} {
		w := newWorld(t, pool.Gigabyte)
		staged(w)
		c.happens(w)
		for call, got := range w.conditions(w.connect()) {
			if !got.there || got.abnormal != c.abnormal || got.message == "" || !strings.Contains(got.message, c.words) {
				t.Errorf("%s: %s has %+v", what, call, got)
			}
		}
		// A check of heartbeats takes a second or two, and kubelet requests each volume's
		// statistics each minute.
		for _, call := range w.zone.Calls() {
			if call == pooltest.Systems {
				t.Errorf("%s: heartbeats are examined", what)
			}
		}
	}
}

// If a check fails, the condition says that the state is unknown. The answer still has the
// statistics that are known.
func TestConditionUnknown(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	staged(w)
	w.zone.Fail(pooltest.Info, pooltest.Before, errkind.New(errkind.NoAnswer, "it does not say"))
	res, err := w.driver.NodeGetVolumeStats(context.Background(), &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: w.path("staging")})
	if err != nil || len(res.GetUsage()) != 2 {
		t.Fatalf("%v, %v", res, err)
	}
	if got := conditionIn(t, res); !got.there || !got.abnormal || !strings.Contains(got.message, "it does not say") {
		t.Errorf("the condition after a failed check is %+v", got)
	}
	w.zone.Fail(pooltest.Space, pooltest.Before, errkind.New(errkind.NoAnswer, "it does not say"))
	if _, err := w.driver.NodeGetVolumeStats(context.Background(), &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: w.path("staging")}); err == nil {
		t.Error("the driver returns statistics although it could not read them")
	}
}

// A volume that is deleted during the check has no condition. The list omits this volume, and a
// request for it fails.
func TestConditionOfDeletedVolume(t *testing.T) {
	for what, c := range map[string]struct {
		call func(*world) error
		code codes.Code
	}{
		"list": {func(w *world) error {
			res, err := w.driver.ListVolumes(context.Background(), &csi.ListVolumesRequest{})
			if n := len(res.GetEntries()); n != 0 {
				t.Errorf("the list has %d volumes", n)
			}
			return err
		}, codes.OK},
		"get": {func(w *world) error {
			_, err := w.driver.ControllerGetVolume(context.Background(), &csi.ControllerGetVolumeRequest{VolumeId: "v"})
			return err
		}, codes.NotFound},
	} {
		w := newWorld(t, pool.Gigabyte)
		volume(w)
		reached, release := w.zone.Hold(pooltest.Info)
		done := make(chan error, 1)
		go func() { done <- c.call(w) }()
		<-reached
		w.must(w.delete(context.Background(), "v"))
		release()
		w.wants(what, <-done, c.code)
	}
}

// For an unreadable volume, the driver reports the condition without statistics.
func TestConditionWithoutUsage(t *testing.T) {
	w := newWorld(t, pool.Gigabyte)
	staged(w)
	w.zone.Damage("v", "it is torn")
	res, err := w.driver.NodeGetVolumeStats(context.Background(), &csi.NodeGetVolumeStatsRequest{VolumeId: "v", VolumePath: w.path("staging")})
	if err != nil || len(res.GetUsage()) != 0 {
		t.Errorf("%v, %v", res, err)
	}
}
