// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Accel is how QEMU executes the guest's instructions.
type Accel struct {
	Name   string // kvm or tcg
	ICount bool   // repeatable instruction counts (tcg, one CPU)
	Node   bool   // the guest must be able to run VMs itself
}

// ForNode returns the accelerator of a node on this host. Under KVM a node can run VMs only if
// nesting is enabled; under QEMU's emulation it always can.
func (a Accel) ForNode() Accel { return a.forNode(nestedParameters) }

// nestedParameters are the files that show whether KVM offers nesting, one for each kind of
// processor.
const nestedParameters = "/sys/module/kvm_*/parameters/nested"

func (a Accel) forNode(parameters string) Accel {
	if a.Name != "kvm" {
		return Accel{Name: a.Name, Node: true}
	}
	// The pattern is valid, and Glob has no other error.
	paths, _ := filepath.Glob(parameters)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if word := strings.TrimSpace(string(text)); err == nil && (word == "Y" || word == "1") {
			return Accel{Name: a.Name, Node: true}
		}
	}
	return Accel{Name: "tcg", Node: true}
}

// args returns QEMU's arguments. Without erms and fsrm, kernels copy by words; with them they use
// rep movsb, which is slow under TCG. With icount no input of the guest may differ between runs:
// seed, clock, random numbers.
func (a Accel) args() []string {
	switch {
	case a.ICount:
		return []string{"-accel", "tcg", "-icount", "shift=0,sleep=off", "-seed", "1",
			"-rtc", "base=2026-01-01,clock=vm", "-cpu", "max,-rdrand,-rdseed,-erms,-fsrm,-fsrs"}
	case a.Name == "kvm":
		return []string{"-accel", "kvm", "-cpu", "host"}
	case a.Node:
		return []string{"-accel", "tcg,thread=multi", "-cpu", "max,+svm,+npt,-erms,-fsrm,-fsrs"}
	}
	return []string{"-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm,-fsrs"}
}

// kernelWords are for a node under TCG. A kernel that measures its clock slightly wrong, as it does
// without an HPET, sets timers of its VMs far in the future. So the rig tells the guest the
// frequency. QEMU before 10.2 loses an interrupt that comes at the moment when a VM inside exits.
// Both change the same word, and only one of them holds the lock. A one-shot timer then never
// fires, and the node stops until another interrupt comes; a periodic tick loses one tick.
func (a Accel) kernelWords() []string {
	switch {
	case a.ICount:
		return []string{"nokaslr", "norandmaps"}
	case a.Node && a.Name == "tcg":
		return []string{fmt.Sprintf("tsc_early_khz=%d", kilocycles()), "highres=off", "nohz=off"}
	}
	return nil
}

func (a Accel) String() string {
	return fmt.Sprintf("accelerator %s (%s)", a.Name, strings.Join(append(a.args(), a.kernelWords()...), " "))
}
