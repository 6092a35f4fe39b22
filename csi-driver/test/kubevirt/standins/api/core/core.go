// SPDX-License-Identifier: Apache-2.0

// Package core replaces a package that the module proxy does not have. KubeVirt 1.9 uses names of
// that package in an informer for templates of VMs. The informer is in a package that the converter
// needs for other reasons. The tested code never starts the informer.
package core

const (
	GroupName            = "template.kubevirt.io"
	SingularResourceName = "virtualmachinetemplate"
	PluralResourceName   = "virtualmachinetemplates"
)
