// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/spdx/tools-golang/json"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

func TestDescribe(t *testing.T) {
	root := dir(t, map[string]string{
		installedDir + "/lvm2": "Package: lvm2\nVersion: 2.03+1\nArchitecture: amd64\nDescription: x\n a: b\n",
		linkedDir + "/libc6":   "Package: libc6-dev\nVersion: 2.36\nArchitecture: amd64\n",
		"usr/share/text":       "abc",
	})
	self, err := os.ReadFile("/proc/self/exe") // this file is a Go program
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "program"), self, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := describe("x", "1", root)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := json.Write(d, &text); err != nil {
		t.Fatal(err)
	}
	if _, err := json.Read(&text); err != nil {
		t.Errorf("cannot be read: %v", err)
	}
	how := map[string]string{}
	for _, r := range d.Relationships {
		how[string(r.RefB.ElementRefID)] = r.Relationship
	}
	got := map[string]string{}
	for _, p := range d.Packages[1:] {
		got[p.PackageExternalReferences[0].Locator] = how[string(p.PackageSPDXIdentifier)]
	}
	want := map[string]string{"pkg:deb/debian/lvm2@2.03%2B1?arch=amd64": "CONTAINS", "pkg:deb/debian/libc6-dev@2.36?arch=amd64": "STATIC_LINK"}
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		want["pkg:golang/"+m.Path+"@"+m.Version] = "STATIC_LINK"
	}
	if len(info.Deps) == 0 {
		t.Error("the program has no modules")
	}
	for purl, relation := range want {
		if got[purl] != relation {
			t.Errorf("%s: %q, should be %q", purl, got[purl], relation)
		}
	}
	i := slices.IndexFunc(d.Packages, func(p *spdx.Package) bool { return p.PackageName == "stdlib" })
	if i < 0 || !strings.HasPrefix(d.Packages[i].PackageVersion, "1.") {
		t.Error("without Go's own library")
	}
	i = slices.IndexFunc(d.Files, func(f *spdx.File) bool { return f.FileName == "/usr/share/text" })
	if i < 0 || d.Files[i].Checksums[0].Value != "a9993e364706816aba3e25717850c26c9cd0d89d" {
		t.Errorf("files: %+v", d.Files)
	}
	if len(d.Files) != 4 {
		t.Errorf("%d files", len(d.Files))
	}
	if err := os.WriteFile(filepath.Join(root, installedDir, "bad"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := describe("x", "1", root); err == nil || !strings.Contains(err.Error(), "no control fields") {
		t.Errorf("a package without fields: %v", err)
	}
}
