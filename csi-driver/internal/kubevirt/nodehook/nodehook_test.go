// SPDX-License-Identifier: Apache-2.0

package nodehook

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/driver"
	"stargate/csi-driver/internal/kubevirt/wire"
	"stargate/csi-driver/internal/zone"
)

// Whatever is said to be a machine gets an answer, and no volume of a node without a zone.
func FuzzMachine(f *testing.F) {
	for _, m := range []string{
		`{"metadata":{"annotations":{"d/volumes":"data"}},"spec":{"domain":{"memory":{"guest":"1Gi"},"firmware":{"uuid":"x"}}},"status":{"activePods":{"..":"n"}}}`,
		`{"metadata":{"annotations":{"d/volumes":"../x"}}}`, `{"metadata":null,"spec":null,"status":null}`, `[]`, ``,
		`{"metadata":{"annotations":{"d/volumes":"a"}},"spec":{"domain":{"memory":{"guest":"1e999999"}}}}`,
	} {
		for _, point := range []string{preVMStart, postVMStop, ""} {
			f.Add(point, []byte(m))
		}
	}
	h := New(Config{Driver: "d", Node: "n", Pods: "/pods"}, zone.Nothing{}, nil)
	f.Fuzz(func(t *testing.T, point string, vmi []byte) {
		_, err := h.execute(context.Background(), wire.Message{}.Add(1, []byte(point)).Add(2, vmi))
		switch code := status.Code(driver.Status(err)); code {
		case codes.OK, codes.InvalidArgument, codes.FailedPrecondition:
		default:
			t.Errorf("%s, %s: %v: %v", point, vmi, code, err)
		}
		if m, err := read(vmi); err == nil {
			m.memory()
		}
	})
}

// What lies elsewhere is of no pod.
func TestPodOf(t *testing.T) {
	h := New(Config{Pods: "/var/lib/kubelet/pods"}, nil, nil)
	for path, want := range map[string]string{
		"/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/p/mount": "u",
		"/var/lib/kubelet/plugins/kubernetes.io/csi/p/globalmount":  "..",
		"/mnt": "..", "relative": "",
	} {
		if got := h.podOf(path); got != want {
			t.Errorf("%s: %q, and not %q", path, got, want)
		}
	}
}
