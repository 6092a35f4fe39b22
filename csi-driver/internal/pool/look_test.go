// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stargate/csi-driver/internal/stargatectl"
)

const machine = "0b5e55ed-0000-4000-8000-00000000beef"

// lookWith returns a Look whose stargatectl reports one system of a VM. The system has one
// incarnation in the list of slots, and another in the list of systems. fenced returns the fenced
// systems.
func lookWith(t *testing.T, inSlots, inTable, inSystems, state string) (l Look, fenced func() string, looks func() int) {
	t.Helper()
	dir := t.TempDir()
	said, looked := filepath.Join(dir, "fenced"), filepath.Join(dir, "looked")
	script := `#!/bin/sh
case "$*" in
*fence*) echo "$*" >>` + said + ` ;;
*slots*) echo '{"slots": [{"slot": 3, "incarnation": ` + inSlots + `, "machine": "` + machine + `", "state": "` + inTable + `"}, {"slot": 4, "incarnation": 1, "machine": "w", "state": "live"}]}' ;;
*) echo x >>` + looked + `; echo '{"systems": [{"slot": 3, "incarnation": ` + inSystems + `, "name": "vm", "machine": "` + machine + `", "state": "` + state + `"},
	{"slot": 4, "incarnation": 1, "name": "other", "machine": "w", "state": "silent"}]}' ;;
esac
`
	for _, name := range []string{stargatectl.Ctl, stargatectl.Mkfs} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	programs, err := stargatectl.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := func(file string) string {
		text, _ := os.ReadFile(file)
		return string(text)
	}
	return Look{programs}, func() string { return lines(said) }, func() int { return strings.Count(lines(looked), "x") }
}

// Ended fences a system if its VM has ended and its heartbeat has stopped, whatever the spelling of
// the VM's UUID. It does not fence a live system, or a system that has joined during the check. It
// does not check the heartbeats of systems that are already dead.
func TestEnded(t *testing.T) {
	plain := strings.ReplaceAll(machine, "-", "")
	for _, c := range []struct {
		machine, inSlots, inTable, inSystems, state, fenced string
		looks                                               int
	}{
		{machine, "7", "live", "7", "silent", "fence 3/7", 1}, {machine, "7", "live", "7", "alive", "", 1}, {machine, "7", "live", "8", "silent", "", 1},
		{strings.ToUpper(machine), "7", "live", "7", "silent", "fence 3/7", 1}, {plain, "7", "live", "7", "silent", "fence 3/7", 1},
		{machine, "7", "dead", "7", "dead", "", 0}, {machine, "7", "recovering", "7", "recovering", "", 0},
		{"w", "7", "live", "7", "silent", "", 0}, {"", "7", "live", "7", "silent", "", 0},
	} {
		l, fenced, looks := lookWith(t, c.inSlots, c.inTable, c.inSystems, c.state)
		names, err := l.Ended(context.Background(), Volume{Name: "v", Path: "/v"}, c.machine)
		if got := fenced(); err != nil || (len(names) == 1) != (c.fenced != "") || !strings.Contains(got, c.fenced) || c.fenced == "" && got != "" {
			t.Errorf("%+v: %v, %v, %q", c, names, err, got)
		}
		if n := looks(); n != c.looks {
			t.Errorf("%+v: %d looks at heartbeats", c, n)
		}
	}
}
