// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
)

// Sizes are limits of a network device, in bytes; 0 if the kernel does not report them.
type Sizes struct{ TSOMax, GSOMax uint32 }

// Attributes of a link that package syscall does not name (linux/if_link.h).
const (
	iflaGSOMaxSize = 41
	iflaTSOMaxSize = 59
)

// Links returns the sizes of each network device, which sysfs does not have. In another root it
// reads lines "NAME TSO-MAX GSO-MAX" of the file /links.
func (s System) Links() (map[string]Sizes, error) {
	found := map[string]Sizes{}
	if !s.Live() {
		for line := range strings.SplitSeq(s.Text("/links"), "\n") {
			var name string
			var sizes Sizes
			if n, _ := fmt.Sscan(line, &name, &sizes.TSOMax, &sizes.GSOMax); n == 3 {
				found[name] = sizes
			}
		}
		return found, nil
	}
	data, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("asking the kernel for network devices: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(data)
	if err != nil {
		return nil, fmt.Errorf("reading the kernel's list of network devices: %w", err)
	}
	for _, message := range messages {
		if message.Header.Type != syscall.RTM_NEWLINK {
			continue
		}
		attributes, err := syscall.ParseNetlinkRouteAttr(&message)
		if err != nil {
			continue
		}
		var name string
		var sizes Sizes
		for _, one := range attributes {
			switch kind := one.Attr.Type; {
			case kind == syscall.IFLA_IFNAME:
				name = strings.TrimRight(string(one.Value), "\x00")
			case kind == iflaGSOMaxSize && len(one.Value) == 4:
				sizes.GSOMax = binary.NativeEndian.Uint32(one.Value)
			case kind == iflaTSOMaxSize && len(one.Value) == 4:
				sizes.TSOMax = binary.NativeEndian.Uint32(one.Value)
			}
		}
		found[name] = sizes
	}
	return found, nil
}
