// SPDX-License-Identifier: Apache-2.0

// Package machineid converts the UUIDs that identify VMs on volumes (D6). Users write them as
// libvirt accepts them: with hyphens or without, in either case. A VM's kernel uses the canonical
// form.
package machineid

import "strings"

const (
	digits   = 32
	mostText = 64
)

// Canonical returns the form of a UUID that the VM's kernel uses, and false if the text is no UUID.
// A UUID of only zeros or only ones is refused, too: to the kernel it means that the board has no
// UUID.
func Canonical(text string) (string, bool) {
	if len(text) > mostText {
		return "", false
	}
	// libvirt ignores hyphens anywhere after the first digit.
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

// Same reports whether both are UUIDs of one VM.
func Same(a, b string) bool {
	one, ok := Canonical(a)
	other, too := Canonical(b)
	return ok && too && one == other
}
