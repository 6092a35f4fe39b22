// SPDX-License-Identifier: Apache-2.0

// Package machineid converts the UUIDs that identify VMs on volumes (D6). Users may write a UUID in
// any form that libvirt accepts: with or without hyphens, in upper or lower case. A VM's kernel
// uses the canonical form.
package machineid

import "strings"

const (
	digits   = 32
	mostText = 64
)

// Canonical returns the form of a UUID that the VM's kernel uses. It returns false if the text is
// no UUID. It also returns false for a UUID of only zeros or only ones, because the kernel then
// assumes that the board has no UUID.
func Canonical(text string) (string, bool) {
	if len(text) > mostText {
		return "", false
	}
	// libvirt ignores hyphens at any place after the first digit.
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

// Same reports whether two texts are the same UUID.
func Same(a, b string) bool {
	one, ok := Canonical(a)
	other, too := Canonical(b)
	return ok && too && one == other
}
