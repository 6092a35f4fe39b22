// SPDX-License-Identifier: Apache-2.0

package domainhook

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/kubevirt/domainxml"
	"stargate/csi-driver/internal/kubevirt/hookproto"
)

const seedDomain = `<domain type="kvm"><memory unit="GiB">1</memory><vcpu>2</vcpu><os><type arch="x86_64" machine="pc-q35-9.2">hvm</type></os>
<cpu mode="host-passthrough"/><devices/></domain>`

// laid returns a folder that holds one mounted claim, data.
func laid(f *testing.F) string {
	f.Helper()
	dir := f.TempDir()
	hidden := filepath.Join(dir, "data", ".stargate")
	err := os.MkdirAll(hidden, 0o755)
	for name, text := range map[string]string{
		"volume.json": `{"version":1,"base":"0x1000000000","size":4194304,"mode":"rw"}`, "region": strings.Repeat("\x00", 4<<20),
	} {
		if err == nil {
			err = os.WriteFile(filepath.Join(hidden, name), []byte(text), 0o600)
		}
	}
	if err != nil {
		f.Fatal(err)
	}
	return dir
}

// The hook answers any request of KubeVirt 1.9 or 1.8 with a domain or an error. The error has one
// line, and a code with which KubeVirt shows it to the user. The hook reads only the folders of
// claims, and stores nothing in them.
func FuzzEnvelope(f *testing.F) {
	dir := laid(f)
	for _, vmi := range []string{
		`{"metadata":{"name":"m","annotations":{"d/volumes":"data"}}}`, `{"metadata":{"annotations":{"d/volumes":"data:ro,other"}}}`,
		`{"metadata":{"annotations":{"d/volumes":"../data"}}}`, `{"metadata":{"annotations":null}}`, `[]`, ``,
	} {
		f.Add([]byte(vmi), []byte(seedDomain), "libvirt", hookproto.Message{}.Add(1, []byte(boot)).Encode())
	}
	f.Add([]byte(`{"metadata":{"annotations":{"d/volumes":"data"}}}`), []byte(`<domain><domain>`), "qemu", []byte{0x0a})
	f.Fuzz(func(t *testing.T, vmi, xml []byte, kind string, about []byte) {
		h := New(Config{Driver: "d", Host: domainxml.Host{Bits: 46, Intel: true}, Folder: func(claim string) string {
			if in := filepath.Join(dir, claim); filepath.Dir(in) == dir {
				return in
			}
			t.Errorf("the hook searches for claim %q outside its folder", claim)
			return filepath.Join(dir, "none")
		}})
		ctx := context.Background()
		_, err := h.mutateDomain(ctx, hookproto.Message{}.Add(1, []byte(kind)).Add(2, xml).Add(3, vmi).Add(4, about))
		refusedOr(t, err)
		out, err := h.defineDomain(ctx, hookproto.Message{}.Add(1, xml).Add(2, vmi))
		refusedOr(t, err)
		if err == nil && !strings.Contains(string(out.Get(1)), filepath.Join(dir, "data", ".stargate", "region")) {
			t.Errorf("the domain has no volume: %s", out.Get(1))
		}
	})
}

func refusedOr(t *testing.T, err error) {
	t.Helper()
	switch code := status.Code(err); code {
	case codes.OK:
	case codes.FailedPrecondition, codes.InvalidArgument:
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("the error has several lines: %q", err)
		}
	default:
		t.Errorf("%s: %v", code, err)
	}
}
