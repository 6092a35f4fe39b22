// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"path/filepath"
	"strings"

	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/errkind"
)

// Keys of the volume context that name the pod (podInfoOnMount).
const (
	contextPodName      = request.ForeignPrefix + "pod.name"
	contextPodNamespace = request.ForeignPrefix + "pod.namespace"
	contextPodUID       = request.ForeignPrefix + "pod.uid"
)

// launcherPrefix is the prefix of the names of pods that KubeVirt creates for VMs. Any user may
// give a pod such a name, so the name proves nothing. The driver uses the prefix only to avoid
// queries about other pods.
const launcherPrefix = "virt-launcher-"

// IsMachines reports whether a pod runs a VM that has the named PersistentVolume as memory.
type IsMachines func(ctx context.Context, namespace, pod, uid, pv string) (bool, error)

// ServeMachines sets the function that recognizes VMs' pods. Call it before the service handles
// calls. Without the function, the driver gives no pod access to a volume's memory.
func (d *Node) ServeMachines(is IsMachines) { d.machines = is }

// isMachines reports whether the pod of a call runs a VM. It reads the PersistentVolume's name from
// kubelet's path, where it is the second last part.
func (d *Node) isMachines(ctx context.Context, context map[string]string, target string) (bool, error) {
	namespace, pod := context[contextPodNamespace], context[contextPodName]
	if d.machines == nil || !strings.HasPrefix(pod, launcherPrefix) {
		return false, nil
	}
	is, err := d.machines(ctx, namespace, pod, context[contextPodUID], filepath.Base(filepath.Dir(target)))
	if err != nil {
		return false, errkind.Wrap(errkind.NoAnswer, err, "pod %s/%s may be the pod of a VM, and the cluster does not answer", namespace, pod)
	}
	return is, nil
}
