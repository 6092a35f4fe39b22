// SPDX-License-Identifier: Apache-2.0

// Package domainxml adds volumes to the domain that KubeVirt has created for a VM. Each volume
// becomes memory at its own physical address (D3, D11). KubeVirt calls the hook many times for one
// VM, also with a domain that already has parts of an earlier answer. The result is the same each
// time.
package domainxml

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"libvirt.org/go/libvirtxml"

	"stargate/csi-driver/internal/kubevirt/volumeinfo"
	"stargate/csi-driver/internal/machineid"
)

// Host describes the node's processor.
type Host struct {
	Bits  uint // width of physical addresses; 0: unknown
	Intel bool
}

const (
	alias   = "ua-stargate-" // libvirt reserves aliases that begin with ua- for users
	model   = "nvdimm"
	mostXML = 8 << 20
)

// Attach returns the domain with the given volumes. It removes volumes that an earlier call added.
// The error says what to do.
func Attach(text []byte, volumes []volumeinfo.Volume, host Host) (out []byte, err error) {
	// Hostile XML may make the library panic. This function turns the panic into an error.
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("the domain cannot be read: %v", p)
		}
	}()
	if len(text) > mostXML {
		return nil, fmt.Errorf("the domain has %d bytes of XML: at most %d are read", len(text), mostXML)
	}
	root, err := parseTree(text)
	if err != nil {
		return nil, fmt.Errorf("the domain cannot be read: %w", err)
	}
	d, err := read(root)
	if err != nil {
		return nil, fmt.Errorf("the domain cannot be read: %w", err)
	}
	if err := change(d, volumes, host); err != nil {
		return nil, err
	}
	if err := store(root, d); err != nil {
		return nil, fmt.Errorf("the domain cannot be written: %w", err)
	}
	return []byte(root.String()), nil
}

// change changes the parts of the domain so that it has the volumes.
func change(d *libvirtxml.Domain, volumes []volumeinfo.Volume, host Host) error {
	if err := suitable(d); err != nil {
		return err
	}
	memory, err := ownMemory(d)
	if err != nil {
		return err
	}
	volumes = slices.Clone(volumes)
	if err := apart(volumes); err != nil {
		return err
	}
	most, err := fit(volumes, memory, reach(d, host), host)
	if err != nil {
		return err
	}
	setMemory(d, memory, most, len(volumes))
	d.Devices.Memorydevs = others(d.Devices.Memorydevs)
	forget(d)
	for i, v := range volumes {
		add(d, uint(i), v)
	}
	return nil
}

// suitable checks that the domain can have volumes.
func suitable(d *libvirtxml.Domain) error {
	if d.OS == nil || d.OS.Type == nil {
		return errors.New("the domain has no element os/type")
	}
	arch, machine := d.OS.Type.Arch, d.OS.Type.Machine
	switch {
	case arch != "" && arch != "x86_64":
		return fmt.Errorf("the VM is of architecture %.40q: volumes are for x86_64 only", arch)
	case machine != "q35" && !strings.Contains(machine, "-q35-"):
		return fmt.Errorf("the VM is of type %.40q: set spec.domain.machine.type to q35", machine)
	case d.LaunchSecurity != nil:
		return errors.New("the VM's memory is encrypted (launchSecurity: SEV, SNP or TDX), and cannot be shared: remove launchSecurity, or the volumes")
	case d.MaximumMemory != nil && d.MaximumMemory.Slots == 0:
		return errors.New("the VM allows memory hotplug, which cannot be combined with a volume: set spec.domain.memory.maxGuest to the value of spec.domain.memory.guest")
	}
	for _, m := range others(d.Devices.Memorydevs) {
		return fmt.Errorf("the VM has another memory device (%.40q): KubeVirt keeps only one, so remove that device, or the volumes", m.Model)
	}
	return nil
}

// ours reports whether an earlier call added the device. KubeVirt may have kept only the device's
// alias.
func ours(m libvirtxml.DomainMemorydev) bool {
	return m.Model == model && m.Alias != nil && strings.HasPrefix(m.Alias.Name, alias)
}

func others(all []libvirtxml.DomainMemorydev) []libvirtxml.DomainMemorydev {
	return slices.DeleteFunc(slices.Clone(all), ours)
}

// uuid returns the VM's UUID in canonical form, the only form that the node knows. Like libvirt, it
// reads the UUID from the domain, or else from the domain's SMBIOS data.
func uuid(d *libvirtxml.Domain) string {
	id, _ := machineid.Canonical(said(d)) // libvirt starts no VM with an invalid UUID
	return id
}

func said(d *libvirtxml.Domain) string {
	if d.UUID != "" {
		return d.UUID
	}
	for _, s := range d.SysInfo {
		if s.SMBIOS == nil || s.SMBIOS.System == nil {
			continue
		}
		for _, e := range s.SMBIOS.System.Entry {
			if e.Name == "uuid" {
				return e.Value
			}
		}
	}
	return ""
}

// setMemory adds memory slots to the VM, and raises its maximum memory. libvirt requires a NUMA
// cell for memory devices. A cell that setMemory adds holds all memory and processors.
func setMemory(d *libvirtxml.Domain, memory, most uint64, slots int) {
	d.MaximumMemory = &libvirtxml.DomainMaxMemory{Value: uint(most >> 10), Unit: "KiB", Slots: uint(slots)}
	if d.CPU == nil {
		d.CPU = &libvirtxml.DomainCPU{}
	}
	if d.CPU.Numa != nil && len(d.CPU.Numa.Cell) > 0 {
		return
	}
	processors, id := uint(1), uint(0)
	if d.VCPU != nil {
		processors = max(d.VCPU.Value, 1)
	}
	d.CPU.Numa = &libvirtxml.DomainNuma{Cell: []libvirtxml.DomainCell{{
		ID: &id, CPUs: fmt.Sprintf("0-%d", processors-1), Memory: uint(memory >> 10), Unit: "KiB",
	}}}
}

func firstCell(d *libvirtxml.Domain) uint {
	if id := d.CPU.Numa.Cell[0].ID; id != nil {
		return *id
	}
	return 0
}

func add(d *libvirtxml.Domain, slot uint, v volumeinfo.Volume) {
	if v.ReadOnly || v.Bad {
		addArguments(d, slot, v)
		return
	}
	d.Devices.Memorydevs = append(d.Devices.Memorydevs, device(slot, v, uuid(d), firstCell(d)))
}

// device returns the memory device of libvirt for a volume. Without access='shared', the VM would
// get a private copy. Without alignsize, it would get no large pages.
func device(slot uint, v volumeinfo.Volume, uuid string, cell uint) libvirtxml.DomainMemorydev {
	base := v.Base
	return libvirtxml.DomainMemorydev{
		Model: model, Access: "shared",
		Source: &libvirtxml.DomainMemorydevSource{
			Path: v.Region(uuid), AlignSize: &libvirtxml.DomainMemorydevSourceAlignsize{Value: volumeinfo.Extent >> 10, Unit: "KiB"},
		},
		Target: &libvirtxml.DomainMemorydevTarget{
			Size: &libvirtxml.DomainMemorydevTargetSize{Value: uint(v.Size >> 10), Unit: "KiB"},
			Node: &libvirtxml.DomainMemorydevTargetNode{Value: cell},
		},
		Alias:   &libvirtxml.DomainAlias{Name: fmt.Sprintf("%s%d", alias, slot)},
		Address: &libvirtxml.DomainAddress{DIMM: &libvirtxml.DomainAddressDIMM{Slot: &slot, Base: &base}},
	}
}
