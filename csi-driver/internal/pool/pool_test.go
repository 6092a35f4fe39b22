// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"math/rand"
	"strings"
	"testing"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/stargatectl"
)

func TestPlaces(t *testing.T) {
	const m = int64(1) << 20
	s := NewSpace(Span{100 * m, 100 * m}, []Span{{150 * m, 10 * m}, {110 * m, 20 * m}, {300 * m, m}})
	for _, c := range []struct{ size, base int64 }{
		{10 * m, 100 * m}, {12 * m, 130 * m}, {20 * m, 130 * m}, {22 * m, 160 * m}, {40 * m, 160 * m}, {42 * m, -1},
	} {
		base, ok := s.Fit(c.size, Extent)
		if !ok {
			base = -1
		}
		if base != c.base {
			t.Errorf("Fit places %d MiB at %d MiB, and should place them at %d MiB", c.size/m, base/m, c.base/m)
		}
	}
	if s.Largest(Extent) != 40*m || s.Free() != 70*m || s.Behind(130*m) != 20*m || s.Behind(110*m) != 0 || s.Behind(200*m) != 0 {
		t.Errorf("largest %d, free %d, behind %d", s.Largest(Extent)/m, s.Free()/m, s.Behind(130*m)/m)
	}
}

// For any sequence of creations and deletions, places do not overlap. Fit finds a place for the
// size that Largest returns.
func TestPlacesAtRandom(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	all := Span{4 << 30, 4 << 30}
	taken := []Span{}
	for range 2000 {
		s := NewSpace(all, taken)
		align := []int64{Extent, Gigabyte}[random.Intn(2)]
		size := Extent * (8 + random.Int63n(300))
		base, ok := s.Fit(size, align)
		if ok != (s.Largest(align) >= size) {
			t.Fatalf("%d bytes: Fit returns %v, but Largest returns %d", size, ok, s.Largest(align))
		}
		if ok {
			if base%align != 0 || base < all.Base || base+size > all.Base+all.Size {
				t.Fatalf("%d bytes at %#x", size, base)
			}
			for _, o := range taken {
				if base < o.Base+o.Size && o.Base < base+size {
					t.Fatalf("%#x + %#x is in %v", base, size, o)
				}
			}
			taken = append(taken, Span{base, size})
		}
		if len(taken) > 0 && random.Intn(3) == 0 {
			i := random.Intn(len(taken))
			taken = append(taken[:i], taken[i+1:]...)
		}
	}
}

func TestAlignment(t *testing.T) {
	for base, want := range map[int64]int64{0: Gigabyte, 2 << 20: 2 << 20, 6 << 20: 2 << 20, 1 << 40: Gigabyte, 3 << 29: 1 << 29} {
		if got := Alignment(base); got != want {
			t.Errorf("%#x: %#x, should be %#x", base, got, want)
		}
	}
}

// NameFor returns a name that stargatectl accepts, for any name of a claim. Different claims get
// different names.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"pvc-1", "", "x-1", "e-1", "snapshot", "-a", "a/b", strings.Repeat("a", 64), "\xff"} {
		f.Add(s, "pvc-2")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := NameFor(a), NameFor(b)
		if !ValidName(x) || !ValidName(EphemeralName(a)) || IsEphemeral(x) || !IsEphemeral(EphemeralName(a)) {
			t.Errorf("%q: %q", a, x)
		}
		if (a == b) != (x == y) {
			t.Errorf("%q, %q: %q, %q", a, b, x, y)
		}
	})
}

// A volume's name in the zone does not contain the node. Each of the two names can be computed from
// the other. Names of another driver, another node or an older chart do not change.
func TestNamesWithNode(t *testing.T) {
	const uid = "0b5e55ed-0000-4000-8000-00000000beef"
	for _, c := range []struct{ driver, node, cluster, zone string }{
		{"stargate.csi.dev", "n1", "pvc-stargate.csi.dev--n1-" + uid, "pvc-stargate.csi.dev-" + uid},
		{"stargate.csi.dev", "n-1.example.org", "pvc-stargate.csi.dev--n-1.example.org-" + uid, "pvc-stargate.csi.dev-" + uid},
		{"stargate.csi.dev", strings.Repeat("n", 63), "pvc-stargate.csi.dev--" + strings.Repeat("n", 63) + "-" + uid, "pvc-stargate.csi.dev-" + uid},
	} {
		if got := WithoutNode(c.cluster, c.driver, c.node); got != c.zone || NameFor(got) != got {
			t.Errorf("%s: %q in the zone", c.cluster, got)
		}
		if got := WithoutNode(c.zone, c.driver, c.node); got != c.zone {
			t.Errorf("%s: %q in the zone", c.zone, got)
		}
		if got := WithNode(c.zone, c.driver, c.node); got != c.cluster {
			t.Errorf("%s: %q in the cluster", c.zone, got)
		}
	}
	for _, name := range []string{"pvc-" + uid, "pvc-other.example--n1-" + uid, "pvc-stargate.csi.dev--n2-" + uid, "pvc-stargate.csi.dev--n1", "by-hand", "x-1", ""} {
		if got := WithoutNode(name, "stargate.csi.dev", "n1"); got != name {
			t.Errorf("%q: %q in the zone", name, got)
		}
	}
	for _, name := range []string{"pvc-" + uid, "pvc-other.example-" + uid, "by-hand", "x-1", ""} {
		if got := WithNode(name, "stargate.csi.dev", "n1"); got != name {
			t.Errorf("%q: %q in the cluster", name, got)
		}
	}
}

// A silent or recovering system causes Busy. A live system causes an error that names it. Dead
// systems do not prevent a volume's deletion. No volume of a claim or of a pod can have the name
// Nobodys.
func TestNameOfNoVolume(t *testing.T) {
	name := Nobodys()
	if !ValidName(name) || NameFor(name) == name || OfClaim(name) || IsSnapshot(name) {
		t.Errorf("%q is the name of a volume", name)
	}
}

func TestUnused(t *testing.T) {
	system := func(state string, guarded bool) stargatectl.System {
		return stargatectl.System{Name: "g", State: state, Guarded: guarded}
	}
	for _, c := range []struct {
		systems []stargatectl.System
		kind    errkind.Kind
	}{
		{nil, errkind.Internal}, {[]stargatectl.System{system("dead", false), system("suspected", false)}, errkind.Internal},
		{[]stargatectl.System{system("silent", false)}, errkind.Busy}, {[]stargatectl.System{system("recovering", false)}, errkind.Busy},
		{[]stargatectl.System{system("silent", false), system("alive", false)}, errkind.InUse}, {[]stargatectl.System{system("suspected", true)}, errkind.InUse},
	} {
		if err := Unused("v", c.systems); (err != nil) != (c.kind != errkind.Internal) || err != nil && !errkind.Is(err, c.kind) {
			t.Errorf("%+v: %v", c.systems, err)
		}
	}
}

// Members can write any name of a system. In an error, this name cannot break a line of the log, or
// control a terminal.
func TestNamesOfSystems(t *testing.T) {
	for _, state := range []string{"alive", "silent"} {
		err := Unused("v", []stargatectl.System{{Name: "g\x1b[31m\n\"E0000 all is well", State: state}})
		if err == nil || strings.ContainsAny(err.Error(), "\x1b\n") || !strings.Contains(err.Error(), `\n`) {
			t.Errorf("%s: %q", state, err)
		}
	}
}

// On a node without a zone, no deletion succeeds, because the node may have had a zone before.
func TestNothingIsDeleted(t *testing.T) {
	ctx := context.Background()
	for what, err := range map[string]error{"volume": Nothing{}.Delete(ctx, "v"), "snapshot": Nothing{}.DeleteSnapshot(ctx, ID{Name: "s-1"})} {
		if !errkind.Is(err, errkind.NoZone) {
			t.Errorf("a %s: %v", what, err)
		}
	}
}

// Names of copies of data sets cannot be names of other volumes.
func TestDatasetNames(t *testing.T) {
	name := DatasetName("uid", "version")
	if !IsDataset(name) || !ValidName(name) || name == DatasetName("uid", "other") || NameFor(name) == name {
		t.Errorf("%s, %s", name, NameFor(name))
	}
	for _, other := range []string{"ds-1", "ds-", name + "0", "e-" + name[3:], "ds-" + name[3:42] + "g"} {
		if IsDataset(other) {
			t.Errorf("%s is a data set's", other)
		}
	}
	if NameFor("ds-1") != "ds-1" {
		t.Error("another volume's name is changed")
	}
}
