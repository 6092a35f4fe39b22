// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"reflect"
	"strings"
	"testing"

	"stargate/e2e/internal/versions"
)

func TestMissing(t *testing.T) {
	got := Missing(map[string]string{
		"sh": "dash", "no-such-program": "b", "/no/such/file": "a", "/etc/passwd": "passwd", "neither-this": "b",
	})
	if !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("got %v", got)
	}
}

func TestBackportsNeedTheirBase(t *testing.T) {
	v := versions.Set{"DEBIAN_MIRROR": "http://m", "DEBIAN_SECURITY_MIRROR": "http://s"}
	lines, err := sources(v, "/the/keys.gpg", "trixie-backports")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{"http://m trixie main", "http://s trixie-security main", "http://m trixie-backports main"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in %s", want, all)
		}
	}
	for _, line := range lines { // without the keyring, Ubuntu's apt would use Ubuntu's keys
		if !strings.HasPrefix(line, "deb [signed-by=/the/keys.gpg] http://") {
			t.Errorf("the line names no keyring: %s", line)
		}
	}
	if _, err := sources(versions.Set{}, "", "trixie"); err == nil {
		t.Error("sources returned no error without a mirror")
	}
}

func TestUnion(t *testing.T) {
	if got := Union([]string{"b", "a"}, []string{"a", "c"}); !reflect.DeepEqual(got, []string{"a", "b", "c"}) {
		t.Errorf("got %v", got)
	}
}
