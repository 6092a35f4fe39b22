// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kubevirt.io/kubevirt/pkg/hooks"
)

// startSidecar starts the hook in its part of KubeVirt's folder.
func startSidecar(t *testing.T, i int, driver string, more ...string) {
	t.Helper()
	folder := filepath.Join(hooks.HookSocketsSharedDirectory, fmt.Sprintf("hook-sidecar-%d", i))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--socket", folder, "--driver-name", driver}, more...)
	startProgram(t, *hookProgram, filepath.Join(folder, driver+".sock"), args...)
}

// TestSidecars uses a VM with volumes of two drivers. KubeVirt distinguishes sockets only by their
// names.
func TestSidecars(t *testing.T) {
	startSidecar(t, 0, "stargate.csi.dev")
	startSidecar(t, 1, "second.csi.dev")
	if err := hooks.GetManager().Collect(2, 10*time.Second); err != nil {
		t.Error(err)
	}
}

// TestSidecar tests hook sidecars. KubeVirt searches for the socket in its own folder, queries the
// hook's description, chooses the newest version, and sends each domain.
func TestSidecar(t *testing.T) {
	volumes := lay(t, "data", "models", "logs")
	startSidecar(t, 0, "stargate.csi.dev", "--volumes", volumes)
	m := hooks.GetManager()
	if err := m.Collect(1, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	throughHook(t, "sidecar", marshal, m.OnDefineDomain)
}
