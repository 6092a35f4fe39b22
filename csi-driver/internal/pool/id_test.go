// SPDX-License-Identifier: Apache-2.0

package pool

import "testing"

// An id is a name, or a name with the identity of a zone. ParseID refuses kubelet's ids of inline
// volumes, and other texts.
func TestIDs(t *testing.T) {
	one, two := Identity(DAX, "one"), Identity(File, "one")
	if one == two || one == "" || Identity(DAX, "") != "" {
		t.Errorf("%q, %q", one, two)
	}
	for s, want := range map[string]ID{"v": {"v", ""}, "v@" + one: {"v", one}} {
		id, ok := ParseID(s)
		if !ok || id != want || id.String() != s || NameOf(s) != "v" {
			t.Errorf("%q is %+v, %v", s, id, ok)
		}
	}
	for _, s := range []string{"", "@" + one, "v@", "v@" + one[1:], "v@" + one + "0", "v@" + one[1:] + "G", "v@" + one + "@" + one, "a/b", "a/b@" + one} {
		if id, ok := ParseID(s); ok || NameOf(s) != s {
			t.Errorf("%q is %+v", s, id)
		}
	}
	for id, want := range map[ID]bool{{"v", ""}: false, {"v", one}: false, {"v", two}: true} {
		if id.Elsewhere(one) != want || id.Elsewhere("") {
			t.Errorf("%+v", id)
		}
	}
}
