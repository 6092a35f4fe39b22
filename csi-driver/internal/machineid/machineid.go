// SPDX-License-Identifier: Apache-2.0

// Package machineid is about the UUIDs by which machines are known on volumes (D6). Users write them as libvirt
// reads them, with hyphens or without and in either case; a machine's kernel says the canonical form.
package machineid

import "strings"

const (
	digits   = 32
	mostText = 64
)

// Canonical is the form in which a machine's kernel says its UUID; false for what is none. One of zeros or of
// ones alone is none either: to the kernel it means that the board has no UUID.
func Canonical(text string) (string, bool) {
	if len(text) > mostText {
		return "", false
	}
	// libvirt skips hyphens, wherever they stand behind the first digit.
	if strings.HasPrefix(text, "-") || strings.HasSuffix(text, "-") {
		return "", false
	}
	hex := strings.ToLower(strings.ReplaceAll(text, "-", ""))
	if len(hex) != digits || strings.Trim(hex, "0123456789abcdef") != "" {
		return "", false
	}
	if strings.Trim(hex, "0") == "" || strings.Trim(hex, "f") == "" {
		return "", false
	}
	return hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:], true
}

// Same tells whether both are UUIDs of one machine.
func Same(a, b string) bool {
	one, ok := Canonical(a)
	other, too := Canonical(b)
	return ok && too && one == other
}
