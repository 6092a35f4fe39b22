// SPDX-License-Identifier: Apache-2.0

package annotation

import (
	"path"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func TestParse(t *testing.T) {
	many := "x"
	for i := range Most {
		many += ",c" + string(rune('a'+i))
	}
	for _, c := range []struct {
		value string
		want  []Claim
		words string
	}{
		{"data", []Claim{{"data", false}}, ""},
		{" data , models:ro,x.y-z:rw", []Claim{{"data", false}, {"models", true}, {"x.y-z", false}}, ""},
		{"", nil, "an empty name"},
		{"data,", nil, "an empty name"},
		{"data:", nil, "write ro or rw"},
		{"data:RO", nil, "write ro or rw"},
		{"../etc", nil, "cannot be the name of a claim"},
		{"a/b", nil, "cannot be the name of a claim"},
		{"Data", nil, "cannot be the name of a claim"},
		{strings.Repeat("a", 254), nil, "cannot be the name of a claim"},
		{"data,data:ro", nil, "named twice"},
		{many, nil, "at most 16"},
		{strings.Repeat(" ", maxText-4) + "data", []Claim{{"data", false}}, ""},
		{strings.Repeat(" ", maxText-3) + "data", nil, "write at most 4112"},
	} {
		got, err := Parse(c.value)
		if c.words == "" && (err != nil || !slices.Equal(got, c.want)) {
			t.Errorf("%q: %v, %v", c.value, got, err)
		}
		if c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words)) {
			t.Errorf("%q: %v, %v, not with %q", c.value, got, err, c.words)
		}
	}
}

func TestOf(t *testing.T) {
	if all, err := Of(map[string]string{"other/volumes": "x"}, "d"); all != nil || err != nil {
		t.Errorf("without the driver's annotation: %v, %v", all, err)
	}
	if _, err := Of(map[string]string{"d/volumes": "X"}, "d"); err == nil || !strings.HasPrefix(err.Error(), "annotation d/volumes: ") {
		t.Errorf("an invalid annotation: %v", err)
	}
}

// Parse refuses a text with an error that fits into an Event, or returns claims with different
// folders. If these claims are written as a text, Parse returns the same claims again.
func FuzzParse(f *testing.F) {
	for _, value := range []string{"data,models:ro", "a:b:c,,", " a , b:rw", "..", "a/../b", "a\n", strings.Repeat("a,", 20), "\xff\x00", "a.b-c:ro,a"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		all, err := Parse(value)
		if err != nil {
			if len(err.Error()) > 600 || strings.Contains(err.Error(), "\n") || len(all) != 0 {
				t.Errorf("%d bytes of error, %d claims: %q", len(err.Error()), len(all), err)
			}
			return
		}
		if len(all) == 0 || len(all) > Most {
			t.Errorf("%d claims", len(all))
		}
		var words []string
		folders := map[string]bool{}
		for _, c := range all {
			in := Folder(c.Name)
			if path.Dir(in) != "/var/run/stargate" || strings.ContainsAny(c.Name, "/,: \t\n") || folders[in] {
				t.Errorf("%q leads to %q", c.Name, in)
			}
			folders[in] = true
			words = append(words, c.Name+map[bool]string{true: ":ro", false: ":rw"}[c.ReadOnly])
		}
		if again, err := Parse(strings.Join(words, ",")); err != nil || !slices.Equal(again, all) {
			t.Errorf("%v becomes %v: %v", all, again, err)
		}
	})
}

// A claim's name does not keep the complete annotation in memory, because a review may keep
// hundreds of names.
func TestNamesStandAlone(t *testing.T) {
	value := " data, models:ro"
	all, err := Parse(value)
	if err != nil {
		t.Fatal(err)
	}
	begin := uintptr(unsafe.Pointer(unsafe.StringData(value)))
	for _, c := range all {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(c.Name))); at >= begin && at < begin+uintptr(len(value)) {
			t.Errorf("%s is a part of the annotation", c.Name)
		}
	}
}
