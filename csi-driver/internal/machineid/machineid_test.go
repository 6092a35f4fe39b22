// SPDX-License-Identifier: Apache-2.0

package machineid

import (
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	const id = "0b5e55ed-0000-4000-8000-00000000beef"
	for text, want := range map[string]string{
		id: id, strings.ToUpper(id): id, strings.ReplaceAll(id, "-", ""): id, "0b5e-55ed000040008000-00000000beef": id,
		"": "", "u": "", id + "0": "", id[1:]: "", id + "-": "", "-" + id: "", " " + id: "", "{" + id + "}": "",
		"0b5e55ed-0000-4000-8000-00000000beeg": "", "0b5e55ed-0000-4000-8000-00000000bé": "", strings.Repeat("-", 100): "",
		"00000000-0000-0000-0000-000000000000": "", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF": "", "../../../../../../../../../../../../": "",
	} {
		if got, ok := Canonical(text); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
		if Same(text, id) != (want != "") || Same(id, text) != (want != "") {
			t.Errorf("%q is the same as %q: %v", text, id, Same(text, id))
		}
	}
	if Same("u", "u") || Same("", "") {
		t.Error("Same returns true for two texts that are no UUIDs")
	}
}
