// SPDX-License-Identifier: Apache-2.0

package nodehook

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/resource"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/machineid"
)

// machine holds the fields of a VirtualMachineInstance that this package reads.
type machine struct {
	Metadata struct {
		Name        string            `json:"name"`
		Namespace   string            `json:"namespace"`
		UID         string            `json:"uid"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Domain struct {
			Memory *struct {
				Guest string `json:"guest"`
			} `json:"memory"`
			Firmware *struct {
				UUID string `json:"uuid"`
			} `json:"firmware"`
		} `json:"domain"`
	} `json:"spec"`
	Status struct {
		ActivePods map[string]string `json:"activePods"` // from a pod's UID to the pod's node
	} `json:"status"`
}

func read(vmi []byte) (machine, error) {
	var m machine
	if err := json.Unmarshal(vmi, &m); err != nil {
		return m, errkind.Wrap(errkind.Invalid, err, "the VM's object cannot be read")
	}
	return m, nil
}

func (m machine) String() string { return m.Metadata.Namespace + "/" + m.Metadata.Name }

func (m machine) hasPod(node, uid string) bool {
	at, known := m.Status.ActivePods[uid]
	return known && at == node
}

// uuid returns the firmware UUID in canonical form, or an empty string if the object has none. The
// VM's kernel identifies itself on volumes by this UUID (D6).
func (m machine) uuid() string {
	if m.Spec.Domain.Firmware == nil {
		return ""
	}
	id, _ := machineid.Canonical(m.Spec.Domain.Firmware.UUID)
	return id
}

// pods returns the UIDs of the VM's pods on a node.
func (m machine) pods(node string) []string {
	var here []string
	for uid, at := range m.Status.ActivePods {
		if at == node {
			here = append(here, uid)
		}
	}
	return here
}

// memory returns the size of the VM's own memory, or 0 if the object does not have it. The domain
// hook checks the size again later.
func (m machine) memory() (uint64, error) {
	if m.Spec.Domain.Memory == nil || m.Spec.Domain.Memory.Guest == "" {
		return 0, nil
	}
	q, err := resource.ParseQuantity(m.Spec.Domain.Memory.Guest)
	if err != nil || q.Sign() < 0 {
		return 0, errkind.New(errkind.Invalid, "VM %s: spec.domain.memory.guest %.40q is no size", m, m.Spec.Domain.Memory.Guest)
	}
	return uint64(q.Value()), nil
}
