// SPDX-License-Identifier: Apache-2.0

package request

import (
	"maps"
	"strings"
	"testing"
)

// Only the operator can set the owner of an inline volume, its lease and the node's data path. The
// pod's author cannot.
func TestInlineParameters(t *testing.T) {
	c := Config{Inline: map[string]string{"rootOwner": "1000:107", "lease": "30", "hostMode": "shadow"}}
	said := map[string]string{"size": "32Mi", "label": "mine", "csi.storage.k8s.io/ephemeral": "true"}
	before := maps.Clone(said)
	s, err := c.InlineSettings(said)
	if err != nil || s.Size != 32<<20 || s.Label != "mine" || s.RootOwner != "1000:107" || s.Lease != "30" || s.HostMode != "shadow" {
		t.Errorf("%+v, %v", s, err)
	}
	if !maps.Equal(said, before) {
		t.Errorf("InlineSettings has changed the request to %v", said)
	}
	for name, value := range map[string]string{"rootOwner": "0:0", "lease": "2", "hostMode": "walk"} {
		for _, c := range []Config{c, {}} {
			if _, err := c.InlineSettings(map[string]string{name: value}); err == nil || !strings.Contains(err.Error(), "operator") {
				t.Errorf("a pod sets the parameter %s: %v", name, err)
			}
		}
	}
	if s, err := (Config{}).InlineSettings(nil); err != nil || s.RootOwner != "" || s.Lease != "" || s.HostMode != "" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := CheckInline(c.Inline); err != nil {
		t.Error(err)
	}
	for _, bad := range []map[string]string{{"rootOwner": "root"}, {"size": "1Gi"}, {"label": "x"}, {"nothing": ""}} {
		if err := CheckInline(bad); err == nil {
			t.Errorf("taken: %v", bad)
		}
	}
}
