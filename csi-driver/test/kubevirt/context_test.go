// SPDX-License-Identifier: Apache-2.0

//go:build !kubevirt16 && !kubevirt17

package kubevirt

import (
	"testing"

	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/converter/types"
)

type (
	converterContext = types.ConverterContext
	efiConfiguration = types.EFIConfiguration
)

// complete adds fields that exist only in some versions' contexts.
func complete(_ *testing.T, c *converterContext, emulate, encrypted bool) {
	c.HypervisorDeviceAvailable, c.HypervisorName = !emulate, v1.KvmHypervisorName
	c.UseLaunchSecuritySEV = encrypted
}
