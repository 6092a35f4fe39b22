// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stargate/csi-driver/internal/tools"
)

// lookWith has a stargatectl that knows one system of machine u, of one incarnation when it looks at slots
// and of another when it has looked at hearts; fenced is what it was told to fence.
func lookWith(t *testing.T, inSlots, inSystems, state string) (l Look, fenced func() string) {
	t.Helper()
	dir := t.TempDir()
	said := filepath.Join(dir, "fenced")
	script := `#!/bin/sh
case "$*" in
*fence*) echo "$*" >>` + said + ` ;;
*slots*) echo '{"slots": [{"slot": 3, "incarnation": ` + inSlots + `, "machine": "U"}, {"slot": 4, "incarnation": 1, "machine": "w"}]}' ;;
*) echo '{"systems": [{"slot": 3, "incarnation": ` + inSystems + `, "name": "vm", "machine": "U", "state": "` + state + `"},
	{"slot": 4, "incarnation": 1, "name": "other", "machine": "w", "state": "silent"}]}' ;;
esac
`
	for _, name := range []string{tools.Ctl, tools.Mkfs} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	programs, err := tools.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Look{programs}, func() string {
		text, _ := os.ReadFile(said)
		return string(text)
	}
}

// Who has ended is declared dead, and neither who lives nor who has come while that was found out.
func TestEnded(t *testing.T) {
	for _, c := range []struct{ inSlots, inSystems, state, fenced string }{
		{"7", "7", "silent", "fence 3/7"}, {"7", "7", "alive", ""}, {"7", "8", "silent", ""},
	} {
		l, fenced := lookWith(t, c.inSlots, c.inSystems, c.state)
		names, err := l.Ended(context.Background(), Volume{Name: "v", Path: "/v"}, "u")
		if got := fenced(); err != nil || (len(names) == 1) != (c.fenced != "") || !strings.Contains(got, c.fenced) || c.fenced == "" && got != "" {
			t.Errorf("%+v: %v, %v, %q", c, names, err, got)
		}
	}
}
