// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"path/filepath"
	"strings"

	"stargate/csi-driver/internal/errkind"
)

// Keys of the pod that a volume is to be published to (podInfoOnMount).
const (
	contextPodName      = foreignPrefix + "pod.name"
	contextPodNamespace = foreignPrefix + "pod.namespace"
	contextPodUID       = foreignPrefix + "pod.uid"
)

// launcherPrefix begins the names of pods that KubeVirt makes for machines. Anybody may give a pod such a name, so it
// decides nothing: the cluster is not asked about other pods.
const launcherPrefix = "virt-launcher-"

// IsMachines tells whether a pod is one that a virtual machine runs in, and the machine has the PersistentVolume of
// that name as memory.
type IsMachines func(ctx context.Context, namespace, pod, uid, pv string) (bool, error)

// ServeMachines has volumes' memory given to machines' pods; before calls come. Without it no pod has any.
func (d *Driver) ServeMachines(is IsMachines) { d.machines = is }

// isMachines is about the pod of a call. kubelet's paths end with the PersistentVolume's name and a word.
func (d *Driver) isMachines(ctx context.Context, context map[string]string, target string) (bool, error) {
	namespace, pod := context[contextPodNamespace], context[contextPodName]
	if d.machines == nil || !strings.HasPrefix(pod, launcherPrefix) {
		return false, nil
	}
	is, err := d.machines(ctx, namespace, pod, context[contextPodUID], filepath.Base(filepath.Dir(target)))
	if err != nil {
		return false, errkind.Wrap(errkind.NoAnswer, err, "pod %s/%s may be a virtual machine's, and the cluster does not answer", namespace, pod)
	}
	return is, nil
}
