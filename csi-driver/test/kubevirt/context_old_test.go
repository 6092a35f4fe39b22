// SPDX-License-Identifier: Apache-2.0

//go:build kubevirt16 || kubevirt17

package kubevirt

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/converter"
)

type (
	converterContext = converter.ConverterContext
	efiConfiguration = converter.EFIConfiguration
)

// complete adds fields that exist only in some versions' contexts. It does not set a field for KVM:
// the converter checks for the device, and mk/test/kubevirt runs the test with a separate /dev.
func complete(t *testing.T, c *converterContext, emulate, encrypted bool) {
	t.Helper()
	encrypt(c, encrypted)
	const device = "/dev/kvm"
	i, err := os.Lstat(device)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
	case err == nil && !i.Mode().IsRegular():
		t.Fatalf("%s is a real device: run this test by mk/test/kubevirt", device)
	case emulate && err == nil:
		err = os.Remove(device)
	case !emulate && err != nil:
		err = os.WriteFile(device, nil, 0o600)
	default:
		err = nil
	}
	if err != nil {
		t.Fatal(err)
	}
}
