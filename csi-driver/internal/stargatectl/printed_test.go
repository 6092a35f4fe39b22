// SPDX-License-Identifier: Apache-2.0

package stargatectl

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

// A program that prints without end neither fills the driver's memory nor causes an error that is
// too long for an Event.
func TestEndlessOutput(t *testing.T) {
	const much = 256 << 20
	for what, script := range map[string]string{
		"errors":  `head -c 268435456 /dev/zero | tr '\0' 'x' >&2; exit 1`,
		"results": `head -c 268435456 /dev/zero | tr '\0' 'x'`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := programs(t, script).Run(context.Background(), Ctl, "look")
		runtime.ReadMemStats(&after)
		if err == nil || len(out) > 0 || len(err.Error()) > 1000 {
			t.Errorf("%s: %d bytes, %.100v", what, len(out), err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > much {
			t.Errorf("%s of %d bytes take %d", what, much, took)
		}
		var r *Refused
		if errors.As(err, &r) != (what == "errors") {
			t.Errorf("%s: %.100v", what, err)
		}
	}
}

func TestShorten(t *testing.T) {
	long := strings.Repeat("é", mostSentence)
	for _, s := range []string{"", "short", long, "x" + long, "\xff" + long} {
		got := shorten(s)
		if len(got) > mostSentence+4 || !utf8.ValidString(got) || len(s) <= mostSentence && got != s || len(s) > mostSentence && !strings.HasSuffix(got, " ...") {
			t.Errorf("%d bytes become %q", len(s), got)
		}
	}
}
