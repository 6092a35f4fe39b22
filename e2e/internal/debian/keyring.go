// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stargate/e2e/internal/cache"
	"stargate/e2e/internal/say"
	"stargate/e2e/internal/versions"
)

// Keyring is the file with the keys of Debian's archive that are installed on this host. The rig
// verifies everything that it fetches by these keys, or by keys that these keys have signed.
const Keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

const (
	keyringPackage = "debian-archive-keyring"
	keyringFile    = keyringPackage + ".gpg"
)

// keyrings finds a keyring for each release of Debian. The installed keyring may be too old: on
// Ubuntu 22.04 its last release is Debian 11. But each release signs a package with the keys of the
// next release. So the rig begins at the newest release whose keys are installed. It fetches and
// verifies that release's package, which has the keys of the next release. It repeats this up to
// the wanted release. So the rig verifies each keyring before it uses it.
type keyrings struct {
	cache     cache.Dir
	installed string
	mirror    string
	releases  []string // the oldest first
	// fetch unpacks a release's package of keys into a folder. It verifies the package by ring.
	fetch func(release, ring, dir string) error
}

func newKeyrings(c cache.Dir, v versions.Set) (keyrings, error) {
	mirror, err := v.Get("DEBIAN_MIRROR")
	if err != nil {
		return keyrings{}, err
	}
	releases, err := v.List("DEBIAN_RELEASES")
	if err != nil {
		return keyrings{}, err
	}
	fetch := func(release, ring, dir string) error {
		root := Root{Suite: release, Variant: "extract", Packages: []string{keyringPackage}}
		return root.makeFrom([]string{source(ring, mirror, release)}, dir)
	}
	return keyrings{c, Keyring, mirror, releases, fetch}, nil
}

// of returns a keyring with the keys of a release. It returns the installed keyring if versions.env
// does not list the release, or lists no earlier release.
func (k keyrings) of(release string) (string, error) {
	before := ""
	for i, name := range k.releases {
		if name == release && i > 0 {
			before = k.releases[i-1]
		}
	}
	installed, err := os.ReadFile(k.installed)
	if err != nil {
		return "", err
	}
	if before == "" || knows(installed, release) {
		return k.installed, nil
	}
	trusted, err := k.of(before)
	if err != nil {
		return "", err
	}
	return k.from(before, trusted, release)
}

// from returns the keyring in the package of a release, after it has verified the package by the
// keyring trusted. The new keyring must have the keys of the release wanted.
func (k keyrings) from(release, trusted, wanted string) (string, error) {
	if strings.ContainsAny(string(k.cache), " \t,[]\"%") {
		return "", fmt.Errorf("apt cannot use a keyring in the folder %s: set STARGATE_CACHE to another folder", k.cache)
	}
	content, err := os.ReadFile(trusted)
	if err != nil {
		return "", err
	}
	inputs := []string{k.mirror, release, wanted, fmt.Sprintf("%x", sha256.Sum256(content))}
	dir, err := k.cache.Entry("keyring", inputs, func(tmp string) error {
		defer say.Step("fetching the keys of Debian %s (from %s, whose keys are installed)", wanted, release)()
		root := filepath.Join(tmp, "root")
		if err := k.fetch(release, trusted, root); err != nil {
			return err
		}
		ring, err := os.ReadFile(filepath.Join(root, Keyring))
		if err != nil {
			return err
		}
		if !knows(ring, wanted) {
			return fmt.Errorf("the %s of Debian %s has no keys of %s", keyringPackage, release, wanted)
		}
		if err := os.WriteFile(filepath.Join(tmp, keyringFile), ring, 0o644); err != nil {
			return err
		}
		return os.RemoveAll(root)
	})
	return filepath.Join(dir, keyringFile), err
}

// knows reports whether a keyring has keys of a release. It looks for the name of the keys' owner,
// which is plain text: "Debian Archive Automatic Signing Key (13/trixie) <...>". This only selects
// a keyring: apt verifies the signatures.
func knows(ring []byte, release string) bool {
	return bytes.Contains(ring, []byte("/"+release+") <"))
}
