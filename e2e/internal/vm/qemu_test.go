// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"strings"
	"testing"
)

// Folders may be named anything.
func TestPathsWithCommas(t *testing.T) {
	spec := Spec{Name: "g1", Disks: Disks{Root: "/a,b/root"}}
	args := strings.Join(spec.args(QEMU{"/q"}, "/c,d e/console"), "\n")
	for _, want := range []string{"path=/c,,d e/console\n", "file=/a,,b/root\n"} {
		if !strings.Contains(args, want) {
			t.Errorf("no %q in\n%s", want, args)
		}
	}
}
