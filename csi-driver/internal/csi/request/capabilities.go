// SPDX-License-Identifier: Apache-2.0

package request

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/publish"
)

const fsType = "stargatefs"

// A volume cannot have writers on several nodes: all pods of a claim run on the volume's node. So
// "many" means many pods on that node.
var accessModes = map[csi.VolumeCapability_AccessMode_Mode]bool{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        true,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: true,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  true,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   true,
	csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    true,
	csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   true,
}

func readerOnly(c *csi.VolumeCapability) bool {
	m := c.GetAccessMode().GetMode()
	return m == csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY || m == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
}

// Options of mount(8) and of stargatefs(5) that a StorageClass may set.
var mountOptions = []string{
	"noatime", "atime", "relatime", "strictatime", "nodiratime", "nodev", "dev", "nosuid", "suid", "noexec", "sync", "dirsync", "lazytime", "ro", "rw",
	"map=walk", "map=shadow", "map=splice", "errors=continue", "errors=remount-ro",
}

// SELinux categories are not allowed: the commas in a level could introduce other options.
var seLinuxContext = regexp.MustCompile(`^context=[a-z0-9_]+:[a-z0-9_]+:[a-z0-9_]+:s[0-9]+$`)

// The largest fsGroup of Kubernetes, and the largest owner that mkfs.stargatefs accepts. A number
// whose bits are all ones is no user.
const (
	lastGroup = 1<<31 - 1
	lastOwner = 1<<32 - 2
)

// decimal parses a number without a sign, and refuses a number above most.
func decimal(s string, last uint64) (n uint64, ok bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil && n <= last
}

// group returns a pod's fsGroup. Without an fsGroup it returns 0, the usual owner of a volume's
// root.
func group(s string) (gid int, ok bool) {
	if s == "" {
		return 0, true
	}
	n, ok := decimal(s, lastGroup)
	return int(n), ok
}

func allowed(option string) bool {
	return slices.Contains(mountOptions, option) || seLinuxContext.MatchString(option)
}

// Check refuses a capability that the driver does not support.
func Check(c *csi.VolumeCapability) error {
	switch {
	case c == nil:
		return errkind.New(errkind.Invalid, "no volume capability is given")
	case c.GetBlock() != nil:
		return errkind.New(errkind.Invalid, "volumeMode Block is not supported: a volume is a file system that several systems share, and another file system would destroy it")
	case c.GetMount() == nil:
		return errkind.New(errkind.Invalid, "a volume capability has no access type (mount or block)")
	case !accessModes[c.GetAccessMode().GetMode()]:
		return errkind.New(errkind.Invalid, "access mode %s is not supported: a volume is shared within its node", c.GetAccessMode().GetMode())
	case c.GetMount().GetFsType() != "" && c.GetMount().GetFsType() != fsType:
		return errkind.New(errkind.Invalid, "file system %q is not supported: only %s is", c.GetMount().GetFsType(), fsType)
	}
	if _, ok := group(c.GetMount().GetVolumeMountGroup()); !ok {
		return errkind.New(errkind.Invalid, "mount group %q: must be the number of a group, at most %d", c.GetMount().GetVolumeMountGroup(), lastGroup)
	}
	for _, flag := range c.GetMount().GetMountFlags() {
		for _, o := range strings.Split(flag, ",") {
			if !allowed(o) {
				return errkind.New(errkind.Invalid, "mount option %q is not allowed; allowed are %s, context=USER:ROLE:TYPE:LEVEL", o, strings.Join(mountOptions, ", "))
			}
		}
	}
	return nil
}

// CheckAll checks all capabilities of a request.
func CheckAll(all []*csi.VolumeCapability) error {
	if len(all) == 0 {
		return errkind.New(errkind.Invalid, "no volume capabilities are given")
	}
	for _, c := range all {
		if err := Check(c); err != nil {
			return err
		}
	}
	return nil
}

// mountOf splits a capability's mount options into those of the kernel and those of the file
// system.
func mountOf(c *csi.VolumeCapability) publish.Options {
	o := publish.Options{ReadOnly: readerOnly(c), Unwritten: readerOnly(c)}
	o.Group, _ = group(c.GetMount().GetVolumeMountGroup()) // checked
	for _, f := range c.GetMount().GetMountFlags() {
		for _, option := range strings.Split(f, ",") {
			switch option {
			case "ro":
				o.ReadOnly = true
			case "suid":
				o.Setuid = true
			case "dev":
				o.Devices = true
			case "rw", "nosuid", "nodev": // the driver itself decides these options
			case "nodiratime": // only for VMs' pods: gives access to the volume's memory
			default:
				o.Flags = append(o.Flags, option)
			}
		}
	}
	return o
}

// MountOptions returns the options with which this node mounts the volume.
func (c Config) MountOptions(of *csi.VolumeCapability, context map[string]string) (publish.Options, error) {
	if err := Check(of); err != nil {
		return publish.Options{}, err
	}
	m, err := HostMode(context)
	if err != nil {
		return publish.Options{}, err
	}
	o := mountOf(of)
	o.Flags = append(o.Flags, m...)
	if (o.Setuid || o.Devices) && !c.AllowSuidDev {
		return o, errkind.New(errkind.InUse, "mount options suid and dev: this node does not allow them (--allow-suid-dev)")
	}
	if slices.Contains(o.Flags, "map=splice") && !c.AllowHostSplice {
		return o, errkind.New(errkind.InUse, "map=splice: this node does not allow it (--allow-host-splice)")
	}
	return o, nil
}
