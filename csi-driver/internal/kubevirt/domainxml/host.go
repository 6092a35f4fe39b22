// SPDX-License-Identifier: Apache-2.0

package domainxml

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
)

// ThisHost reads the processor's properties from /proc/cpuinfo. The hook does not check properties
// that are missing there.
func ThisHost() Host {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return Host{}
	}
	defer f.Close()
	return readHost(f)
}

func readHost(r io.Reader) Host {
	var h Host
	lines := bufio.NewScanner(r)
	for lines.Scan() && h.Bits == 0 {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "vendor_id":
			h.Intel = value == "GenuineIntel"
		case "address sizes":
			if n, err := strconv.ParseUint(strings.TrimSuffix(strings.Split(value, ",")[0], " bits physical"), 10, 8); err == nil {
				h.Bits = uint(n)
			}
		}
	}
	return h
}
