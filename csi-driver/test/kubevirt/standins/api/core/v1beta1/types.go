// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 stands in for one that the module proxy does not have; see package core.
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// VirtualMachineTemplate has what every object has.
type VirtualMachineTemplate struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

// DeepCopyObject makes it a runtime.Object.
func (t *VirtualMachineTemplate) DeepCopyObject() runtime.Object {
	c := &VirtualMachineTemplate{TypeMeta: t.TypeMeta}
	t.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return c
}
