// SPDX-License-Identifier: Apache-2.0

package zonetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"stargate/csi-driver/internal/fault"
	"stargate/csi-driver/internal/tools"
	"stargate/csi-driver/internal/zone"
)

func fresh() *Zone { return New(Config{Base: 64 << 30, Size: ContractSize}) }

func TestContract(t *testing.T) {
	Contract(t, func(*testing.T) zone.Zone { return fresh() })
}

// Who uses a volume keeps it, and is named; who is between life and death is waited for.
func TestUse(t *testing.T) {
	const machine = "0b5e55ed-0000-4000-8000-00000000beef"
	z, ctx := fresh(), context.Background()
	v, err := z.Create(ctx, zone.Spec{Name: "v", Size: zone.MinVolume, Align: zone.Extent})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		state string
		kind  fault.Kind
	}{{"alive", fault.InUse}, {"silent", fault.Busy}} {
		z.Use("v", tools.System{Name: "vm", Machine: strings.ToUpper(machine), State: c.state})
		if err := z.Delete(ctx, "v"); !fault.Is(err, c.kind) || !strings.Contains(err.Error(), "vm") {
			t.Errorf("%s: %v", c.state, err)
		}
		if got, err := z.Get(ctx, "v"); err != nil || got.State != zone.InUse {
			t.Errorf("%s: %+v, %v", c.state, got, err)
		}
	}
	if names, err := z.Ended(ctx, v, strings.ReplaceAll(machine, "-", "")); err != nil || !slices.Equal(names, []string{"vm"}) {
		t.Errorf("ended: %v, %v", names, err)
	}
	z.Damage("v", "it is torn")
	if _, err := z.Info(ctx, v); !fault.Is(err, fault.Internal) {
		t.Errorf("damaged: %v", err)
	}
	if _, err := z.Grow(ctx, "v", 64*mib); !fault.Is(err, fault.InUse) {
		t.Errorf("damaged: %v", err)
	}
	if err := z.Delete(ctx, "v"); err != nil || len(z.Left()) > 0 {
		t.Errorf("left is %v, %v", z.Left(), err)
	}
}

// While one call for a volume goes on another one is Busy, and what it takes nobody else can have. One that is
// cancelled then leaves nothing.
func TestHold(t *testing.T) {
	z := fresh()
	ctx, cancel := context.WithCancel(context.Background())
	reached, release := z.Hold(Create)
	defer release()
	spec := zone.Spec{Name: "v", Size: ContractSize, Align: zone.Extent}
	done := make(chan error)
	go func() { _, err := z.Create(ctx, spec); done <- err }()
	<-reached
	if _, err := z.Create(context.Background(), spec); !fault.Is(err, fault.Busy) {
		t.Errorf("the same: %v", err)
	}
	spec.Name = "w"
	if _, err := z.Create(context.Background(), spec); !fault.Is(err, fault.NoSpace) {
		t.Errorf("another one: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || len(z.Left()) > 0 {
		t.Errorf("cancelled: %v, %v", err, z.Left())
	}
}

// A failure comes once, where it was asked for.
func TestFailures(t *testing.T) {
	z, ctx := fresh(), context.Background()
	spec := zone.Spec{Name: "v", Size: zone.MinVolume, Align: zone.Extent}
	want := fault.New(fault.Busy, "wait")
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
