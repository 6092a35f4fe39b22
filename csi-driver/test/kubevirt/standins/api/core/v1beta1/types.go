// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 replaces a package that the module proxy does not have; see package core.
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ConditionReady is the name of a condition.
const ConditionReady = "Ready"

// VirtualMachineTemplate has the fields that KubeVirt's code uses.
type VirtualMachineTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   VirtualMachineTemplateSpec   `json:"spec"`
	Status VirtualMachineTemplateStatus `json:"status,omitempty"`
}

// VirtualMachineTemplateSpec is a VM with parameters.
type VirtualMachineTemplateSpec struct {
	VirtualMachine *runtime.RawExtension `json:"virtualMachine"`
	Parameters     []Parameter           `json:"parameters,omitempty"`
}

// Parameter is one parameter.
type Parameter struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// VirtualMachineTemplateStatus reports whether the template can be used.
type VirtualMachineTemplateStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopy returns a copy that shares nothing with the original.
func (t *VirtualMachineTemplate) DeepCopy() *VirtualMachineTemplate {
	c := &VirtualMachineTemplate{TypeMeta: t.TypeMeta}
	t.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.VirtualMachine = t.Spec.VirtualMachine.DeepCopy()
	c.Spec.Parameters = append(c.Spec.Parameters, t.Spec.Parameters...)
	for _, condition := range t.Status.Conditions {
		c.Status.Conditions = append(c.Status.Conditions, *condition.DeepCopy())
	}
	return c
}

// DeepCopyObject implements runtime.Object.
func (t *VirtualMachineTemplate) DeepCopyObject() runtime.Object { return t.DeepCopy() }
