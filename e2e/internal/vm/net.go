// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
)

// Net is a network of guests. Without Tap, it is an Ethernet that only the guests of a run share.
// QEMU sends its frames by multicast over the loopback. Benchmarks of other systems need it,
// StargateFS does not. With Tap, it is the network behind that tap, for a guest that is a node of a
// cluster. The owner of the tap also assigns the addresses.
type Net struct{ Run, Tap string }

// args returns QEMU's arguments for a guest.
func (n *Net) args(guest string) []string {
	if n == nil {
		return nil
	}
	return []string{
		"-netdev", n.backend(),
		"-device", fmt.Sprintf("virtio-net-pci,netdev=net,mac=52:54:00:73:67:%02x,romfile=", number(guest)),
	}
}

func (n *Net) backend() string {
	if n.Tap != "" {
		return "tap,id=net,ifname=" + n.Tap + ",script=no,downscript=no"
	}
	h := sha256.Sum256([]byte(n.Run))
	port := 20000 + (int(h[2])<<8|int(h[3]))%40000
	return fmt.Sprintf("socket,id=net,mcast=239.192.%d.%d:%d,localaddr=127.0.0.1", h[0], h[1], port)
}

// Address returns the address of a guest: g1 has 10.115.103.1. Behind a tap, the rig knows no
// address, and Address returns "".
func (n *Net) Address(guest string) string {
	if n.Tap != "" {
		return ""
	}
	return fmt.Sprintf("10.115.103.%d", number(guest))
}

func number(guest string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(guest, "g"))
	return n
}
