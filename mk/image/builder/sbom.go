// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/utils"
)

// Folders in which a root records the Debian packages of its files. The first has the control
// fields of each installed package, as in distroless images. The second has those of the packages
// whose code is linked into our programs.
const (
	installedDir = "var/lib/dpkg/status.d"
	linkedDir    = "usr/share/doc/stargate/linked.d"
)

func runSBOM(args []string) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	name := flags.String("name", "", "of the image")
	version := flags.String("version", "", "of the image")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 || *name == "" || *version == "" {
		return errUsage
	}
	document, err := describe(*name, *version, flags.Arg(0))
	if err != nil {
		return err
	}
	return json.Write(document, os.Stdout, json.Indent(" "))
}

// part is a component of the image, with its relation to the image.
type part struct {
	ecosystem, name, version, purl, relation string
}

// describe returns a document about all files below a folder, and their components.
func describe(name, version, root string) (*spdx.Document, error) {
	when, err := epoch()
	if err != nil {
		return nil, err
	}
	files, parts, err := look(root)
	if err != nil {
		return nil, err
	}
	code, err := utils.GetVerificationCode(files, "")
	if err != nil {
		return nil, err
	}
	const own = "Package-" + "image"
	d := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: "https://stargatefs.invalid/spdx/" + name + "-" + version + "-" + code.Value,
		CreationInfo: &spdx.CreationInfo{
			Created: when.Format("2006-01-02T15:04:05Z"), Creators: []common.Creator{{CreatorType: "Tool", Creator: "stargate-image"}},
		},
		Packages: []*spdx.Package{{
			PackageName: name, PackageVersion: version, PackageSPDXIdentifier: own, PackageDownloadLocation: "NOASSERTION",
			FilesAnalyzed: true, IsFilesAnalyzedTagPresent: true, PackageVerificationCode: &code,
			PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: "Apache-2.0 AND GPL-2.0-only", PackageCopyrightText: "NOASSERTION",
			PrimaryPackagePurpose: "CONTAINER",
		}},
		Files:         files,
		Relationships: []*spdx.Relationship{related("DOCUMENT", "DESCRIBES", own)},
	}
	for _, f := range files {
		d.Relationships = append(d.Relationships, related(own, "CONTAINS", f.FileSPDXIdentifier))
	}
	for i, p := range parts {
		id := common.ElementID(fmt.Sprintf("Package-%s-%d", p.ecosystem, i))
		d.Packages = append(d.Packages, &spdx.Package{
			PackageName: p.name, PackageVersion: p.version, PackageSPDXIdentifier: id, PackageDownloadLocation: "NOASSERTION",
			IsFilesAnalyzedTagPresent: true, PackageLicenseConcluded: "NOASSERTION", PackageLicenseDeclared: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
			PackageExternalReferences: []*spdx.PackageExternalReference{{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: p.purl}},
		})
		d.Relationships = append(d.Relationships, related(own, p.relation, id))
	}
	return d, nil
}

func related(a common.ElementID, how string, b common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.DocElementID{ElementRefID: a}, RefB: common.DocElementID{ElementRefID: b}, Relationship: how}
}

// look returns the files of a root folder, and the components that they belong to.
func look(root string) ([]*spdx.File, []part, error) {
	var files []*spdx.File
	parts := map[part]bool{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		inside, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := hashed(path, inside, len(files))
		if err != nil {
			return err
		}
		files = append(files, f)
		for _, dir := range []string{installedDir, linkedDir} {
			if filepath.Dir(inside) == dir {
				return debian(path, dir, parts)
			}
		}
		goModules(path, parts)
		return nil
	})
	all := slices.SortedFunc(maps.Keys(parts), func(a, b part) int { return cmp.Or(cmp.Compare(a.purl, b.purl), cmp.Compare(a.relation, b.relation)) })
	return files, all, err
}

func hashed(path, name string, n int) (*spdx.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	one, two := sha1.New(), sha256.New() // SPDX requires the former
	if _, err := io.Copy(io.MultiWriter(one, two), f); err != nil {
		return nil, err
	}
	return &spdx.File{
		FileName: "/" + name, FileSPDXIdentifier: common.ElementID(fmt.Sprintf("File-%d", n)),
		Checksums: []common.Checksum{
			{Algorithm: common.SHA1, Value: hex.EncodeToString(one.Sum(nil))},
			{Algorithm: common.SHA256, Value: hex.EncodeToString(two.Sum(nil))},
		},
		LicenseConcluded: "NOASSERTION", FileCopyrightText: "NOASSERTION",
	}, nil
}

// debian reads the control fields of a package.
func debian(path, dir string, parts map[part]bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fields := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), ": "); found {
			fields[name] = value
		}
	}
	if err := lines.Err(); err != nil || fields["Package"] == "" || fields["Version"] == "" {
		return fmt.Errorf("%s: no control fields of a package (%v)", path, err)
	}
	relation := "CONTAINS"
	if dir == linkedDir {
		relation = "STATIC_LINK"
	}
	plain := func(name string) string { return strings.ReplaceAll(fields[name], "+", "%2B") }
	purl := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", plain("Package"), plain("Version"), fields["Architecture"])
	parts[part{"deb", fields["Package"], fields["Version"], purl, relation}] = true
	return nil
}

// goModules reads the modules that a Go program lists; other files list none.
func goModules(path string, parts map[part]bool) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return
	}
	version := strings.TrimPrefix(info.GoVersion, "go")
	parts[part{"golang", "stdlib", version, "pkg:golang/stdlib@" + version, "STATIC_LINK"}] = true
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts[part{"golang", m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version, "STATIC_LINK"}] = true
	}
}
