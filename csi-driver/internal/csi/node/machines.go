// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"path/filepath"
	"strings"

	"stargate/csi-driver/internal/csi/request"
	"stargate/csi-driver/internal/errkind"
)

// Keys of the pod to which a volume is published (podInfoOnMount).
const (
	contextPodName      = request.ForeignPrefix + "pod.name"
	contextPodNamespace = request.ForeignPrefix + "pod.namespace"
	contextPodUID       = request.ForeignPrefix + "pod.uid"
)

// launcherPrefix begins the names of pods that KubeVirt makes for VMs. Any user may give a pod such
// a name, so it proves nothing. It only spares the cluster questions about other pods.
const launcherPrefix = "virt-launcher-"

// IsMachines reports whether a pod runs a VM that has the PersistentVolume of that name as memory.
type IsMachines func(ctx context.Context, namespace, pod, uid, pv string) (bool, error)

// ServeMachines lets VMs' pods have volumes' memory; call it before the first call. Without it no
// pod has any.
func (d *Node) ServeMachines(is IsMachines) { d.machines = is }

// isMachines answers for the pod of a call. kubelet's paths end with the PersistentVolume's name
// and a word.
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
