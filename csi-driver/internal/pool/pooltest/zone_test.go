// SPDX-License-Identifier: Apache-2.0

package pooltest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
	"stargate/csi-driver/internal/stargatectl"
)

func fresh() *Zone { return New(Config{Base: 64 << 30, Size: ContractSize}) }

func TestContract(t *testing.T) {
	Contract(t, func(*testing.T) pool.Zone { return fresh() })
}

// Delete refuses a volume in use, with an error that names the system. A silent system causes Busy.
func TestUse(t *testing.T) {
	const machine = "0b5e55ed-0000-4000-8000-00000000beef"
	z, ctx := fresh(), context.Background()
	v, err := z.Create(ctx, pool.Spec{Name: "v", Size: pool.MinVolume, Align: pool.Extent})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		state string
		kind  errkind.Kind
	}{{"alive", errkind.InUse}, {"silent", errkind.Busy}} {
		z.Use("v", stargatectl.System{Name: "vm", Machine: strings.ToUpper(machine), State: c.state})
		if err := z.Delete(ctx, "v"); !errkind.Is(err, c.kind) || !strings.Contains(err.Error(), "vm") {
			t.Errorf("%s: %v", c.state, err)
		}
		if got, err := z.Get(ctx, "v"); err != nil || got.State != pool.InUse {
			t.Errorf("%s: %+v, %v", c.state, got, err)
		}
	}
	if names, err := z.Ended(ctx, v, strings.ReplaceAll(machine, "-", "")); err != nil || !slices.Equal(names, []string{"vm"}) {
		t.Errorf("ended: %v, %v", names, err)
	}
	z.Damage("v", "it is torn")
	if _, err := z.Info(ctx, v); !errkind.Is(err, errkind.Internal) {
		t.Errorf("damaged: %v", err)
	}
	if _, err := z.Grow(ctx, "v", 64*mib); !errkind.Is(err, errkind.InUse) {
		t.Errorf("damaged: %v", err)
	}
	if err := z.Delete(ctx, "v"); err != nil || len(z.Left()) > 0 {
		t.Errorf("after the deletion, the zone has %v, %v", z.Left(), err)
	}
}

// While a call creates a volume, another call for this volume fails with Busy, and no other volume
// gets the volume's addresses. If the first call is then cancelled, it leaves nothing.
func TestHold(t *testing.T) {
	z := fresh()
	ctx, cancel := context.WithCancel(context.Background())
	reached, release := z.Hold(Create)
	defer release()
	spec := pool.Spec{Name: "v", Size: ContractSize, Align: pool.Extent}
	done := make(chan error)
	go func() { _, err := z.Create(ctx, spec); done <- err }()
	<-reached
	if _, err := z.Create(context.Background(), spec); !errkind.Is(err, errkind.Busy) {
		t.Errorf("Create of the same volume: %v", err)
	}
	spec.Name = "w"
	if _, err := z.Create(context.Background(), spec); !errkind.Is(err, errkind.NoSpace) {
		t.Errorf("Create of another volume: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || len(z.Left()) > 0 {
		t.Errorf("cancelled: %v, %v", err, z.Left())
	}
}

// A planned failure happens once, at the planned moment.
func TestFailures(t *testing.T) {
	z, ctx := fresh(), context.Background()
	spec := pool.Spec{Name: "v", Size: pool.MinVolume, Align: pool.Extent}
	want := errkind.New(errkind.Busy, "wait")
	for when, there := range map[When]bool{Before: false, After: true} {
		z.Fail(Create, when, want)
		if _, err := z.Create(ctx, spec); !errors.Is(err, want) {
			t.Errorf("%s: %v", when, err)
		}
		if _, err := z.Get(ctx, "v"); (err == nil) != there {
			t.Errorf("%s: %v", when, err)
		}
		if err := z.Delete(ctx, "v"); err != nil {
			t.Error(err)
		}
		if got := z.Calls(); !slices.Equal(got, []Call{Create, Get, Delete}) {
			t.Errorf("%s: %v", when, got)
		}
	}
}
