// SPDX-License-Identifier: Apache-2.0

package domainxml

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"libvirt.org/go/libvirtxml"

	"stargate/csi-driver/internal/kubevirt/volumeinfo"
)

// QEMU detects late that an address does not fit, and its message does not name the volume. So this
// file computes the layout as QEMU does for a q35; `stargatectl volume libvirt-xml` does the same.
const (
	mebibyte  = uint64(1) << 20
	gibibyte  = uint64(1) << 30
	lowMost   = 11 * gibibyte / 4 // memory smaller than this lies completely below 4 GiB
	low       = 2 * gibibyte      // larger memory has this part below 4 GiB
	pciWindow = 32 * gibibyte     // size of the PCI window after all memory
	amdHole   = 1012 * gibibyte   // if addresses reach this, QEMU moves high memory to 1 TiB
	// Address width of processor models that QEMU defines.
	ownBits = 40
	maxBits = 52
)

func roundUp(n, to uint64) uint64 { return (n + to - 1) / to * to }

// devicesStart returns the first address for memory devices, after the VM's own memory.
func devicesStart(memory uint64) uint64 {
	above := uint64(0)
	if memory >= lowMost {
		above = memory - low
	}
	return roundUp(4*gibibyte+above, gibibyte)
}

// Fits returns an error if a VM with this much memory cannot have the volume at its address. The
// error says what to do.
func Fits(v volumeinfo.Volume, memory uint64) error {
	if devicesStart(memory) <= v.Base {
		return nil
	}
	if v.Base < 4*gibibyte {
		return fmt.Errorf("claim %s lies at %s, and every VM has memory or devices below 4 GiB: reserve memory at higher addresses for the zone",
			v.Claim, size(v.Base))
	}
	room, most := v.Base/gibibyte*gibibyte-4*gibibyte, lowMost-2*mebibyte
	if room > 0 {
		most = max(most, room+low)
	}
	return fmt.Errorf("claim %s lies at %s, and a VM with %s has memory there: give it at most %s (spec.domain.memory.guest)",
		v.Claim, size(v.Base), size(memory), size(most))
}

// apart sorts the volumes by address, and checks that they do not overlap.
func apart(volumes []volumeinfo.Volume) error {
	slices.SortStableFunc(volumes, func(a, b volumeinfo.Volume) int { return cmp.Compare(a.Base, b.Base) })
	for i := 1; i < len(volumes); i++ {
		a, b := volumes[i-1], volumes[i]
		if a.End() > b.Base {
			return fmt.Errorf("claims %s and %s have the same addresses (0x%x): they are volumes of two zones, and a VM can have only one of them",
				a.Claim, b.Claim, b.Base)
		}
	}
	return nil
}

// fit returns the VM's maximum memory. Like libvirt, it includes memory devices.
func fit(volumes []volumeinfo.Volume, memory uint64, reach uint, host Host) (uint64, error) {
	if len(volumes) == 0 {
		return 0, errors.New("no claims are named")
	}
	for _, v := range volumes {
		if err := Fits(v, memory); err != nil {
			return 0, err
		}
	}
	last := volumes[len(volumes)-1]
	// QEMU adds 1 GiB of addresses for each slot, for alignment.
	end := roundUp(last.End()+uint64(len(volumes))*gibibyte, gibibyte) + pciWindow
	if reach != 0 && reach < maxBits && end > 1<<reach {
		return 0, fmt.Errorf("claim %s: a VM with it has addresses up to %s, and its processor reaches to %s (%d bits): set spec.domain.cpu.model to host-passthrough, or reserve memory at lower addresses for the zone",
			last.Claim, size(end), size(1<<reach), reach)
	}
	if !host.Intel && end > amdHole {
		return 0, fmt.Errorf("claim %s: a VM with it has addresses up to %s, and on processors of AMD QEMU moves its memory to 1 TiB if they reach 1012 GiB: reserve memory at lower addresses for the zone",
			last.Claim, size(end))
	}
	return memory + last.End() - devicesStart(memory), nil
}

// reach returns the width of the physical addresses of the VM's processor, in bits.
func reach(d *libvirtxml.Domain, host Host) uint {
	if d.Type != "kvm" || d.CPU == nil {
		return ownBits
	}
	if m := d.CPU.MaxPhysAddr; m != nil && m.Mode == "emulate" && m.Bits != 0 {
		return m.Bits
	}
	if d.CPU.Mode == "host-passthrough" || d.CPU.MaxPhysAddr != nil && d.CPU.MaxPhysAddr.Mode == "passthrough" {
		return host.Bits
	}
	return ownBits
}

var units = map[string]uint64{
	"b": 1, "byte": 1, "bytes": 1, "": 1 << 10, "k": 1 << 10, "KiB": 1 << 10, "KB": 1e3, "M": 1 << 20, "MiB": 1 << 20, "MB": 1e6,
	"G": 1 << 30, "GiB": 1 << 30, "GB": 1e9, "T": 1 << 40, "TiB": 1 << 40, "TB": 1e12,
}

// ownMemory returns the size of the VM's own memory, rounded up to MiB as in libvirt.
func ownMemory(d *libvirtxml.Domain) (uint64, error) {
	if d.CPU != nil && d.CPU.Numa != nil && len(d.CPU.Numa.Cell) > 0 {
		total := uint64(0)
		for _, c := range d.CPU.Numa.Cell {
			n, err := inBytes(c.Memory, c.Unit)
			if err != nil {
				return 0, err
			}
			if total += n; total > 1<<maxBits {
				return 0, errors.New("the domain has more memory than there are addresses")
			}
		}
		return total, nil
	}
	if d.Memory == nil {
		return 0, errors.New("the domain has no memory element")
	}
	return inBytes(d.Memory.Value, d.Memory.Unit)
}

func inBytes(value uint, unit string) (uint64, error) {
	scale, known := units[unit]
	if !known {
		return 0, fmt.Errorf("the domain's memory is in %.40q, which is no unit", unit)
	}
	high, n := bits.Mul64(uint64(value), scale)
	if high != 0 || n == 0 || n > 1<<maxBits {
		return 0, fmt.Errorf("the domain has %d %s of memory, which is impossible", value, unit)
	}
	return roundUp(n, mebibyte), nil
}

// size formats n for messages, in the largest unit in which n is an integer.
func size(n uint64) string {
	names := []string{"", "Ki", "Mi", "Gi", "Ti"}
	i := 0
	for n != 0 && n%1024 == 0 && i < len(names)-1 {
		n, i = n/1024, i+1
	}
	return strconv.FormatUint(n, 10) + names[i]
}
