// SPDX-License-Identifier: Apache-2.0

package kubevirt

import (
	"path/filepath"
	"testing"
	"time"

	"kubevirt.io/kubevirt/pkg/hooks"
)

// TestSidecar is the way of hook sidecars: KubeVirt looks for the socket in its own folder, asks who is
// there, takes the newest version, and sends each domain.
func TestSidecar(t *testing.T) {
	volumes := lay(t, "data", "models", "logs")
	startHook(t, volumes, filepath.Join(hooks.HookSocketsSharedDirectory, "hook-sidecar-0", "stargate.sock"))
	m := hooks.GetManager()
	if err := m.Collect(1, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	throughHook(t, "sidecar", marshal, m.OnDefineDomain)
}
