// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file declares the fields of KubeVirt's objects that the webhook reads. An import of
// KubeVirt's own types would import all of KubeVirt.

type memory struct {
	Guest    *resource.Quantity `json:"guest,omitempty"`
	MaxGuest *resource.Quantity `json:"maxGuest,omitempty"`
	Reserved *struct {
		MemLock string `json:"memLock,omitempty"`
	} `json:"reservedOverhead,omitempty"`
}

type processors struct {
	Sockets    uint32    `json:"sockets,omitempty"`
	MaxSockets uint32    `json:"maxSockets,omitempty"`
	Realtime   *struct{} `json:"realtime,omitempty"`
}

type devices struct {
	Host       []struct{} `json:"hostDevices,omitempty"`
	GPUs       []struct{} `json:"gpus,omitempty"`
	Interfaces []struct {
		Name  string    `json:"name"`
		SRIOV *struct{} `json:"sriov,omitempty"`
	} `json:"interfaces,omitempty"`
	Filesystems []filesystem `json:"filesystems,omitempty"`
}

type filesystem struct {
	Name string `json:"name"`
}

// volume is one of the VM's own volumes (spec.volumes), with the fields that may name a claim.
type volume struct {
	Name  string `json:"name"`
	Claim *struct {
		Name string `json:"claimName"`
	} `json:"persistentVolumeClaim,omitempty"`
	DataVolume *struct {
		Name string `json:"name"`
	} `json:"dataVolume,omitempty"`
}

// claim returns the claim that the volume names, or an empty string. A DataVolume and its claim
// have the same name.
func (v volume) claim() string {
	switch {
	case v.Claim != nil:
		return v.Claim.Name
	case v.DataVolume != nil:
		return v.DataVolume.Name
	}
	return ""
}

type machineSpec struct {
	Architecture     string            `json:"architecture,omitempty"`
	NodeSelector     map[string]string `json:"nodeSelector,omitempty"`
	Volumes          []volume          `json:"volumes,omitempty"`
	EvictionStrategy *string           `json:"evictionStrategy,omitempty"`
	Domain           struct {
		CPU            *processors     `json:"cpu,omitempty"`
		Memory         *memory         `json:"memory,omitempty"`
		Devices        devices         `json:"devices"`
		LaunchSecurity json.RawMessage `json:"launchSecurity,omitempty"`
		Firmware       *struct {
			UUID string `json:"uuid,omitempty"`
		} `json:"firmware,omitempty"`
		Machine *struct {
			Type string `json:"type,omitempty"`
		} `json:"machine,omitempty"`
	} `json:"domain"`
}

// instance is a VirtualMachineInstance, or the template of one in a VirtualMachine.
type instance struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              machineSpec `json:"spec"`
}

// uuid returns the UUID that identifies the VM on volumes, or an empty string if it is not set yet.
func (m *instance) uuid() string {
	if m.Spec.Domain.Firmware == nil {
		return ""
	}
	return m.Spec.Domain.Firmware.UUID
}

type virtualMachine struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Template *instance `json:"template"`
	} `json:"spec"`
}

type migration struct {
	Spec struct {
		VMIName string `json:"vmiName"`
	} `json:"spec"`
}

type kubevirt struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Configuration struct {
			EvictionStrategy string `json:"evictionStrategy,omitempty"`
			Developer        struct {
				FeatureGates []string `json:"featureGates,omitempty"`
				Disabled     []string `json:"disabledFeatureGates,omitempty"`
			} `json:"developerConfiguration"`
		} `json:"configuration"`
	} `json:"spec"`
	Status struct {
		Version string `json:"observedKubeVirtVersion,omitempty"`
	} `json:"status"`
}

func decode(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("the object cannot be read: %w", err)
	}
	return nil
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func add(path string, value any) operation { return operation{"add", path, value} }

// extend returns the operations that append to a list. If the list is empty, the object does not
// have it, so the first operation creates it.
func extend[T any](path string, had, more []T) []operation {
	if len(had) == 0 {
		return []operation{add(path, more)}
	}
	var patch []operation
	for _, one := range more {
		patch = append(patch, add(path+"/-", one))
	}
	return patch
}
