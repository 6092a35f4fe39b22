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

// complete adds fields that not every version's context has. KVM is not set here: the converter
// looks for its device, and mk/test/kubevirt gives the test a /dev of its own.
func complete(t *testing.T, c *converterContext, emulate, encrypted bool) {
	t.Helper()
	encrypt(c, encrypted)
	const device = "/dev/kvm"
	i, err := os.Lstat(device)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
	case err == nil && !i.Mode().IsRegular():
		t.Fatalf("%s is a real one: mk/test/kubevirt runs this", device)
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
