// SPDX-License-Identifier: Apache-2.0

package domainxml

import (
	"fmt"
	"strings"

	"libvirt.org/go/libvirtxml"

	"stargate/csi-driver/internal/kubevirt/volumeinfo"
)

// libvirt (11.3 and older) cannot attach two kinds of volumes, so the hook passes these as
// arguments to QEMU. All other volumes are devices of libvirt, which checks, counts and shows them.
//
// A read-only volume must be memory that the VM cannot write, whatever its kernel does (D10). For
// <readonly/>, libvirt sets unarmed=on. This only requests that the guest does not write; QEMU
// still opens the file for writing.
//
// A volume with bad pages cannot be allocated in advance: the kernel refuses a page that it knows
// to be bad, and QEMU exits. libvirt makes QEMU allocate every nvdimm, whatever the value of
// <allocation mode>.
const (
	objectID = "stargate-mem-"
	deviceID = "stargate-nv-"
	nvdimms  = "nvdimm=on"
)

func addArguments(d *libvirtxml.Domain, slot uint, v volumeinfo.Volume) {
	if d.QEMUCommandline == nil {
		d.QEMUCommandline = &libvirtxml.DomainQEMUCommandline{}
	}
	var readOnly, unarmed string
	if v.ReadOnly {
		readOnly, unarmed = ",readonly=on", ",unarmed=on"
	}
	args := []string{
		"-object", fmt.Sprintf("memory-backend-file,id=%s%d,mem-path=%s,size=%d,align=%d,share=on,prealloc=off%s",
			objectID, slot, strings.ReplaceAll(v.Region(uuid(d)), ",", ",,"), v.Size, volumeinfo.Extent, readOnly),
		"-device", fmt.Sprintf("nvdimm,id=%s%d,memdev=%s%d,slot=%d,addr=0x%x,node=%d%s",
			deviceID, slot, objectID, slot, slot, v.Base, firstCell(d), unarmed),
	}
	if !hasPair(d, "-machine", nvdimms) {
		args = append([]string{"-machine", nvdimms}, args...)
	}
	for _, a := range args {
		d.QEMUCommandline.Args = append(d.QEMUCommandline.Args, libvirtxml.DomainQEMUCommandlineArg{Value: a})
	}
}

func hasPair(d *libvirtxml.Domain, option, value string) bool {
	args := d.QEMUCommandline.Args
	for i := 1; i < len(args); i++ {
		if args[i-1].Value == option && args[i].Value == value {
			return true
		}
	}
	return false
}

// forget removes the arguments that an earlier call added.
func forget(d *libvirtxml.Domain) {
	if d.QEMUCommandline == nil {
		return
	}
	args := d.QEMUCommandline.Args
	var left []libvirtxml.DomainQEMUCommandlineArg
	for i := 0; i < len(args); i++ {
		if i+1 < len(args) && earlier(args[i].Value, args[i+1].Value) {
			i++
			continue
		}
		left = append(left, args[i])
	}
	d.QEMUCommandline.Args = left
	if len(left) == 0 && len(d.QEMUCommandline.Envs) == 0 {
		d.QEMUCommandline = nil
	}
}

func earlier(option, value string) bool {
	switch option {
	case "-object":
		return strings.HasPrefix(value, "memory-backend-file,id="+objectID)
	case "-device":
		return strings.HasPrefix(value, "nvdimm,id="+deviceID)
	case "-machine":
		return value == nvdimms
	}
	return false
}
