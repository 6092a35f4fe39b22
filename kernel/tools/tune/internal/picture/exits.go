// SPDX-License-Identifier: Apache-2.0

// Package picture draws a measurement as SVG.
package picture

import (
	"encoding/xml"
	"fmt"
	"strings"

	"stargate/tune/internal/host"
)

const (
	width  = 760
	label  = 300 // columns of text before a bar
	bar    = 360 // the longest bar
	height = 20  // of a line
	most   = 15  // bars for each VM
)

// Exits draws each VM's exits by reason as bars, all with the same scale.
func Exits(f *host.Facts) string {
	var body strings.Builder
	y := 30
	line := func(x int, size int, weight, text string) {
		fmt.Fprintf(&body, `<text x="%d" y="%d" font-size="%d" font-weight="%s">%s</text>`+"\n", x, y, size, weight, escape(text))
	}
	line(10, 16, "bold", "Exits a second, by reason")
	y += height
	line(10, 12, "normal", fmt.Sprintf("kernel %s, measured for %.1f s", f.Kernel, f.Seconds))
	longest := 1.0
	for _, vm := range f.VMs {
		for _, one := range vm.Reasons {
			longest = max(longest, one.PerSecond)
		}
	}
	if len(f.VMs) == 0 {
		y += 2 * height
		line(10, 13, "normal", "no VM of KVM runs here")
	}
	for _, vm := range f.VMs {
		y += 2 * height
		line(10, 14, "bold", fmt.Sprintf("%s: %.0f exits, %.0f wake-ups", vm.Name, vm.Exits, vm.Wakeups))
		for i, one := range vm.Reasons {
			if i == most {
				break
			}
			y += height
			line(20, 12, "normal", one.Name)
			length := max(1, int(one.PerSecond/longest*bar))
			fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%d" height="14" fill="#3b6ea5"/>`+"\n", label, y-12, length)
			line(label+length+6, 12, "normal", fmt.Sprintf("%.1f", one.PerSecond))
		}
	}
	y += height
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif">`+"\n"+
		`<rect width="100%%" height="100%%" fill="white"/>`+"\n%s</svg>\n", width, y, body.String())
}

func escape(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text))
	return out.String()
}
