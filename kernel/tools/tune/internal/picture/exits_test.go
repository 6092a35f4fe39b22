// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"stargate/tune/internal/host"
)

// elements returns the number of each element in a picture, and fails if the picture is not
// well-formed.
func elements(t *testing.T, picture string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for decoder := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok {
			found[start.Name.Local]++
		}
	}
}

func TestExits(t *testing.T) {
	vm := host.VM{Name: `<script>"&`, Exits: 10, Reasons: []host.Rate{{Name: "HLT", PerSecond: 9}, {Name: "IO & more", PerSecond: 0.1}}}
	picture := Exits(&host.Facts{Kernel: "6.12", Seconds: 3, VMs: []host.VM{vm, vm}})
	if found := elements(t, picture); found["svg"] != 1 || found["rect"] != 1+4 || found["script"] != 0 {
		t.Errorf("%v in %s", found, picture)
	}
	if found := elements(t, Exits(&host.Facts{})); found["rect"] != 1 {
		t.Errorf("%v", found)
	}
}
