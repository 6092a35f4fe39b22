// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/binary"
	"fmt"
	"strings"
)

func cpuid(leaf uint32) (a, b, c, d uint32)

// Hypervisor returns the signature of the hypervisor ("KVMKVMKVM"), which is empty on a machine
// without one, and KVM's features and hints. In another root the file /cpuid has these three
// values, because tests cannot choose the hypervisor.
func (s System) Hypervisor() (signature string, features, hints uint32) {
	if !s.Live() {
		_, _ = fmt.Sscan(s.Text("/cpuid"), &signature, &features, &hints)
		return signature, features, hints
	}
	if _, _, c, _ := cpuid(1); c>>31 == 0 {
		return "", 0, 0
	}
	last, b, c, d := cpuid(0x40000000)
	var name [12]byte
	binary.LittleEndian.PutUint32(name[0:], b)
	binary.LittleEndian.PutUint32(name[4:], c)
	binary.LittleEndian.PutUint32(name[8:], d)
	signature = strings.TrimRight(string(name[:]), "\x00")
	// Old versions of KVM report 0 as their last leaf, and mean this one.
	if signature == "KVMKVMKVM" && (last == 0 || last >= 0x40000001) {
		features, _, _, hints = cpuid(0x40000001)
	}
	return signature, features, hints
}
