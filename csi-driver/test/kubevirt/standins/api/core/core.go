// SPDX-License-Identifier: Apache-2.0

// Package core replaces a package that the module proxy does not have. KubeVirt 1.9 compiles names
// of it into an informer for templates of VMs, in a package that its converter needs for other
// things. The tested code never starts that informer.
package core

const (
	GroupName            = "template.kubevirt.io"
	SingularResourceName = "virtualmachinetemplate"
	PluralResourceName   = "virtualmachinetemplates"
)
