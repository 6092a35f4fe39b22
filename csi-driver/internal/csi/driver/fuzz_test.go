// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/csi/grpcstatus"
	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/kernelmodule"
	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/publish"
	"stargate/csi-driver/internal/stargatectl"
)

// strict is a zone with a volume v and a snapshot of v. It fails the test if a call names an object
// of the wrong kind, or has an invalid name.
type strict struct {
	pool.Nothing
	t *testing.T
}

func (s strict) named(name string, ok bool) {
	if !ok || !pool.ValidName(name) || filepath.Base(name) != name {
		s.t.Errorf("the zone is to have %q", name)
	}
}

func (strict) Kind() pool.Kind { return pool.File }

func (s strict) Get(_ context.Context, name string) (pool.Volume, error) {
	if name != "v" {
		return pool.Volume{}, errkind.New(errkind.NotFound, "there is no volume %q", name)
	}
	return pool.Volume{Name: "v", State: pool.Ready, Path: "/zone/v", Size: pool.Gigabyte, Alignment: pool.Extent}, nil
}

func (s strict) Create(_ context.Context, spec pool.Spec) (pool.Volume, error) {
	s.named(spec.Name, !pool.IsSnapshot(spec.Name))
	for _, o := range spec.Options() {
		if strings.ContainsAny(o, "\x00\n") {
			s.t.Errorf("the driver passes the option %q", o)
		}
	}
	return pool.Volume{Name: spec.Name, State: pool.Ready, Path: "/zone/" + spec.Name, Size: spec.Size}, nil
}

func (s strict) Clone(ctx context.Context, spec pool.Spec, _ pool.Volume) (pool.Volume, error) {
	return s.Create(ctx, spec)
}

func (s strict) Delete(_ context.Context, name string) error {
	s.named(name, true) // the zone does not delete snapshots by this method
	return nil
}

func (s strict) Grow(ctx context.Context, name string, _ int64) (pool.Volume, error) {
	s.named(name, name == "v")
	return s.Get(ctx, name)
}

func (s strict) Snapshot(_ context.Context, of pool.ID) (pool.Snapshot, error) {
	s.named(of.Name, pool.IsSnapshot(of.Name))
	if of.Name != pool.SnapshotName("s") {
		return pool.Snapshot{}, errkind.New(errkind.NotFound, "there is no snapshot %q", of.Name)
	}
	return pool.Snapshot{Name: of.Name, Source: "v", Size: pool.Gigabyte}, nil
}

func (s strict) TakeSnapshot(ctx context.Context, name string, source pool.Volume, target pool.Target) (pool.Snapshot, error) {
	s.named(name, pool.IsSnapshot(name))
	s.named(source.Name, source.Name == "v")
	if target != pool.InZone {
		s.t.Errorf("a snapshot has target %q, although there is no folder", target)
	}
	return pool.Snapshot{Name: name, Source: source.Name}, nil
}

func (s strict) DeleteSnapshot(_ context.Context, of pool.ID) error {
	s.named(of.Name, pool.IsSnapshot(of.Name))
	return nil
}

func (strict) Info(context.Context, pool.Volume) (stargatectl.Info, error) {
	return stargatectl.Info{MaxSize: 16 * pool.Gigabyte}, nil
}

// shower mounts nothing. It checks that each path is within kubelet's folder.
type shower struct {
	t       *testing.T
	kubelet string
}

func (s shower) at(o publish.Options, paths ...string) error {
	for _, p := range paths {
		if !strings.HasPrefix(p, s.kubelet+"/") || filepath.Clean(p) != p {
			s.t.Errorf("shown at %q", p)
		}
	}
	for _, f := range o.Flags {
		if strings.ContainsAny(f, ", \x00") || strings.HasPrefix(f, "-") {
			s.t.Errorf("mounted with %q", f)
		}
	}
	return nil
}

func (s shower) Stage(_ context.Context, _ pool.Volume, path string, o publish.Options) error {
	return s.at(o, path)
}

func (s shower) Publish(_ context.Context, _ pool.Volume, staging, target string, o publish.Options) error {
	return s.at(o, staging, target)
}

func (s shower) Direct(_ context.Context, _ pool.Volume, target string, o publish.Options) error {
	return s.at(o, target)
}

func (s shower) Shown(pool.Volume) ([]string, error) {
	return []string{filepath.Join(s.kubelet, "staged")}, nil
}

func (s shower) ShownAll(volumes []pool.Volume) (map[string][]string, error) {
	all := map[string][]string{}
	for _, v := range volumes {
		all[v.Name], _ = s.Shown(v)
	}
	return all, nil
}

func (s shower) Machines(pool.Volume) ([]string, error) { return nil, nil }

func (s shower) Usage(_ context.Context, _ pool.Volume, path string) (publish.Usage, error) {
	return publish.Usage{}, s.at(publish.Options{}, path)
}

func (s shower) Withdraw(_ context.Context, path string) error { return s.at(publish.Options{}, path) }

func (shower) Grown(context.Context, pool.Volume) error { return nil }

// said has the fields of a request.
type said struct {
	id, name, path, key, value string
	n                          int64
}

// calls lists all calls, each with the fields of the request that it uses.
func (s said) calls(d *Driver) map[string]func(context.Context) error {
	words := map[string]string{s.key: s.value}
	inline := map[string]string{s.key: s.value, request.ContextInline: "true"}
	sizes := &csi.CapacityRange{RequiredBytes: s.n}
	capability := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_Mode(s.n & 7)},
	}
	if s.n&8 != 0 {
		capability.GetMount().MountFlags = []string{s.value}
	}
	create := &csi.CreateVolumeRequest{
		Name: s.name, CapacityRange: sizes, Parameters: words, VolumeCapabilities: []*csi.VolumeCapability{capability},
		AccessibilityRequirements: &csi.TopologyRequirement{Preferred: []*csi.Topology{{Segments: words}, nil}},
	}
	clone := func(source *csi.VolumeContentSource) *csi.CreateVolumeRequest {
		return &csi.CreateVolumeRequest{Name: s.name, CapacityRange: sizes, VolumeCapabilities: create.VolumeCapabilities, VolumeContentSource: source}
	}
	ofVolume := &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: s.id}}}
	ofSnapshot := &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: s.id}}}
	return map[string]func(context.Context) error{
		"create":  func(ctx context.Context) error { _, err := d.CreateVolume(ctx, create); return err },
		"clone":   func(ctx context.Context) error { _, err := d.CreateVolume(ctx, clone(ofVolume)); return err },
		"restore": func(ctx context.Context) error { _, err := d.CreateVolume(ctx, clone(ofSnapshot)); return err },
		"nothing": func(ctx context.Context) error {
			_, err := d.CreateVolume(ctx, clone(&csi.VolumeContentSource{}))
			return err
		},
		"delete": func(ctx context.Context) error {
			_, err := d.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: s.id})
			return err
		},
		"validate": func(ctx context.Context) error {
			_, err := d.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{
				VolumeId: s.id, VolumeCapabilities: create.VolumeCapabilities, Parameters: words,
			})
			return err
		},
		"capacity": func(ctx context.Context) error {
			_, err := d.GetCapacity(ctx, &csi.GetCapacityRequest{Parameters: words, AccessibleTopology: &csi.Topology{Segments: words}})
			return err
		},
		"list": func(ctx context.Context) error {
			_, err := d.ListVolumes(ctx, &csi.ListVolumesRequest{StartingToken: s.value, MaxEntries: int32(s.n)})
			return err
		},
		"snapshots": func(ctx context.Context) error {
			_, err := d.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: s.id, SourceVolumeId: s.name, StartingToken: s.value})
			return err
		},
		"snapshot": func(ctx context.Context) error {
			_, err := d.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: s.name, SourceVolumeId: s.id, Parameters: words})
			return err
		},
		"get snapshot": func(ctx context.Context) error {
			_, err := d.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: s.id})
			return err
		},
		"delete snapshot": func(ctx context.Context) error {
			_, err := d.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: s.id})
			return err
		},
		"get": func(ctx context.Context) error {
			_, err := d.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: s.id})
			return err
		},
		"expand": func(ctx context.Context) error {
			_, err := d.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: s.id, CapacityRange: sizes})
			return err
		},
		"stage": func(ctx context.Context) error {
			_, err := d.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
				VolumeId: s.id, StagingTargetPath: s.path, VolumeCapability: capability, VolumeContext: words,
			})
			return err
		},
		"publish": func(ctx context.Context) error {
			_, err := d.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
				VolumeId: s.id, StagingTargetPath: s.path, TargetPath: s.path, VolumeCapability: capability, VolumeContext: words,
			})
			return err
		},
		"inline": func(ctx context.Context) error {
			_, err := d.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
				VolumeId: s.id, TargetPath: s.path, VolumeCapability: capability, VolumeContext: inline,
			})
			return err
		},
		"stats": func(ctx context.Context) error {
			_, err := d.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: s.id, VolumePath: s.path})
			return err
		},
		"node expand": func(ctx context.Context) error {
			_, err := d.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{VolumeId: s.id, VolumePath: s.path, CapacityRange: sizes})
			return err
		},
		"unpublish": func(ctx context.Context) error {
			_, err := d.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: s.id, TargetPath: s.path})
			return err
		},
		"unstage": func(ctx context.Context) error {
			_, err := d.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: s.id, StagingTargetPath: s.path})
			return err
		},
	}
}

// For any request, no call panics, and each failure has a code of the table. No call creates an
// object under a name that leads out of the zone, or uses a path outside kubelet's folder.
func FuzzRequests(f *testing.F) {
	root := f.TempDir()
	kubelet, outside := filepath.Join(root, "kubelet"), filepath.Join(root, "outside")
	for _, err := range []error{
		os.Mkdir(kubelet, 0o755), os.Mkdir(outside, 0o755), os.Symlink(outside, filepath.Join(kubelet, "link")),
		os.Mkdir(filepath.Join(kubelet, "staged"), 0o755),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	folder, err := mounts.OpenFolder(kubelet)
	if err != nil {
		f.Fatal(err)
	}
	snapshot := pool.SnapshotName("s")
	for _, s := range []said{
		{"v", "new", "staged", "hostMode", "walk", 1 << 30}, {snapshot, "n", "pod", "alignment", "1Gi", 1<<30 | 8},
		{"../../etc/passwd", "../../etc", "../outside/x", "label", "a\x00b", -1}, {"a/b", "", "link/x", "topology.d/node", "n2", 0},
		{"s-x", "s-x", "link", "rootOwner", "0:0 --force", 1 << 62}, {"-f", "--force", "/etc", "size", "1e99", 8},
		{"v\x00", "\xff", "a\x00", "csi.storage.k8s.io/pvc/name", "../x", 9}, {"", strings.Repeat("n", 200), "", "", "", 15},
		{"v", "n", "", "snapshotTarget", "folder", 0}, {"csi-" + strings.Repeat("0", 64), "x-", "a b", "maxSize", "64Ti", 13}, {"snapshot1", "pvmove0", ".", "lease", "-1", 24},
	} {
		f.Add(s.id, s.name, s.path, s.key, s.value, s.n)
	}
	f.Fuzz(func(t *testing.T, id, name, path, key, value string, n int64) {
		d := New(request.Config{Name: "d", NodeID: "n", DefaultSize: 1 << 30}, strict{t: t}, shower{t, kubelet}, kernelmodule.New(root), folder)
		s := said{id, name, kubelet + "/" + path, key, value, n}
		for what, call := range s.calls(d) {
			err := call(context.Background())
			var known *errkind.Error
			if err != nil && !errors.As(err, &known) {
				t.Errorf("%s: the error %v has no kind", what, err)
			}
			if c := status.Code(grpcstatus.Of(err)); c == codes.Unknown || c == codes.Unimplemented {
				t.Errorf("%s: %s", what, c)
			}
		}
		for dir, want := range map[string]int{root: 2, outside: 0} {
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != want {
				t.Fatalf("%s has %v, %v", dir, entries, err)
			}
		}
	})
}
