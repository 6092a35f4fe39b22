// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"stargate/e2e/internal/cache"
	"stargate/e2e/internal/versions"
)

// ring returns a keyring that seems to have the keys of some releases: it has their owners' names.
func ring(releases ...string) string {
	text := "\x99\x02\x0d\x04"
	for i, name := range releases {
		text += fmt.Sprintf("\xb4GDebian Archive Automatic Signing Key (%d/%s) <ftpmaster@debian.org>\x89", i+11, name)
	}
	return text
}

// archive replaces Debian's archive: it has the keyring of each release, and records each fetch.
type archive struct {
	t       *testing.T
	rings   map[string]string
	fetched []string
}

func (a *archive) fetch(release, with, dir string) error {
	content, err := os.ReadFile(with)
	if err != nil {
		a.t.Fatal(err)
	}
	if !knows(content, release) {
		a.t.Errorf("the keyring cannot verify the package of %s", release)
	}
	a.fetched = append(a.fetched, release)
	file := filepath.Join(dir, Keyring)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(a.rings[release]), 0o644)
}

func (a *archive) keyrings(installed string) keyrings {
	file := filepath.Join(a.t.TempDir(), "installed.gpg")
	if err := os.WriteFile(file, []byte(installed), 0o644); err != nil {
		a.t.Fatal(err)
	}
	return keyrings{cache.Dir(a.t.TempDir()), file, "http://m", []string{"bullseye", "bookworm", "trixie"}, a.fetch}
}

func newArchive(t *testing.T) *archive {
	return &archive{t: t, rings: map[string]string{
		"bullseye": ring("bullseye", "bookworm"),
		"bookworm": ring("bullseye", "bookworm", "trixie"),
	}}
}

func TestEachKeyringIsVerifiedByTheOneBefore(t *testing.T) {
	for _, test := range []struct {
		machine   string
		installed string
		fetched   []string
	}{
		{"Ubuntu 22.04", ring("bullseye"), []string{"bullseye", "bookworm"}},
		{"Ubuntu 24.04", ring("bullseye", "bookworm"), []string{"bookworm"}},
		{"Debian 12", ring("bullseye", "bookworm", "trixie"), nil},
	} {
		a := newArchive(t)
		k := a.keyrings(test.installed)
		for range []string{"fetched", "cached"} {
			file, err := k.of("trixie")
			if err != nil {
				t.Fatalf("%s: %v", test.machine, err)
			}
			content, err := os.ReadFile(file)
			if err != nil || !knows(content, "trixie") {
				t.Errorf("%s: no keys of trixie in %s (%v)", test.machine, file, err)
			}
			if (file == k.installed) != (test.fetched == nil) {
				t.Errorf("%s: got %s", test.machine, file)
			}
			if !reflect.DeepEqual(a.fetched, test.fetched) {
				t.Errorf("%s: fetched the keyrings of %v", test.machine, a.fetched)
			}
		}
	}
}

func TestAKeyringWithoutTheKeysIsNotKept(t *testing.T) {
	a := newArchive(t)
	k := a.keyrings(ring("bookworm"))
	a.rings["bookworm"] = ring("bookworm") // an outdated mirror
	if _, err := k.of("trixie"); err == nil || !strings.Contains(err.Error(), "no keys of trixie") {
		t.Errorf("got %v", err)
	}
	a.rings["bookworm"] = ring("bookworm", "trixie")
	if _, err := k.of("trixie"); err != nil {
		t.Errorf("later: %v", err)
	}
}

// A line of sources.list cannot name a path with these characters.
func TestAFolderThatAptCannotBeTold(t *testing.T) {
	a := newArchive(t)
	k := a.keyrings(ring("bookworm"))
	k.cache = cache.Dir(filepath.Join(t.TempDir(), "a cache"))
	if _, err := k.of("trixie"); err == nil || !strings.Contains(err.Error(), "STARGATE_CACHE") {
		t.Errorf("got %v", err)
	}
}

// For other releases, the rig fetches nothing, and apt uses the installed keyring.
func TestOtherReleasesHaveWhatIsInstalled(t *testing.T) {
	a := newArchive(t)
	k := a.keyrings(ring("buster"))
	for _, release := range []string{"forky", "bullseye"} {
		if file, err := k.of(release); err != nil || file != k.installed {
			t.Errorf("%s: got %s, %v", release, file, err)
		}
	}
	if a.fetched != nil {
		t.Errorf("fetched %v", a.fetched)
	}
}

func TestKnows(t *testing.T) {
	if r := []byte(ring("bookworm")); !knows(r, "bookworm") || knows(r, "trixie") || knows(r, "worm") || knows(r, "") {
		t.Error("wrong")
	}
}

func projects(t *testing.T) (versions.Set, keyrings) {
	t.Helper()
	v, err := versions.Read("../../../versions.env")
	if err != nil {
		t.Fatal(err)
	}
	k, err := newKeyrings("", v)
	if err != nil {
		t.Fatal(err)
	}
	return v, k
}

// For each release that the project uses, versions.env lists an earlier release with its keys.
func TestReleasesOfTheProject(t *testing.T) {
	v, k := projects(t)
	listed := " " + strings.Join(k.releases[1:], " ") + " "
	for key, suite := range v {
		if strings.HasSuffix(key, "_SUITE") && !strings.Contains(listed, " "+Root{Suite: suite}.base()+" ") {
			t.Errorf("%s=%s is not in DEBIAN_RELEASES, or is the first release there", key, suite)
		}
	}
}

// knows finds the owners' names in a real keyring of Debian.
func TestTheInstalledKeyring(t *testing.T) {
	content, err := os.ReadFile(Keyring)
	if err != nil {
		t.Skip("no keyring of Debian is installed")
	}
	_, k := projects(t)
	for _, release := range k.releases {
		if knows(content, release) {
			return
		}
	}
	t.Errorf("%s has keys of none of %v", Keyring, k.releases)
}
