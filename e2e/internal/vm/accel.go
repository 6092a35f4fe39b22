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
	Node   bool   // the guest shall run machines itself
}

// ForNode is how a node is executed on this machine: KVM only lets it run
// machines itself where that is switched on; QEMU's translation always does.
func (a Accel) ForNode() Accel { return a.forNode(nestedParameters) }

// nestedParameters say whether KVM offers nesting, by processor.
const nestedParameters = "/sys/module/kvm_*/parameters/nested"

func (a Accel) forNode(parameters string) Accel {
	if a.Name != "kvm" {
		return Accel{Name: a.Name, Node: true}
	}
	// The pattern is sound, which is all that can be wrong with it.
	paths, _ := filepath.Glob(parameters)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if word := strings.TrimSpace(string(text)); err == nil && (word == "Y" || word == "1") {
			return Accel{Name: a.Name, Node: true}
		}
	}
	return Accel{Name: "tcg", Node: true}
}

// args are QEMU's. Without erms and fsrm kernels copy by words: rep movsb is
// slow under TCG. With icount nothing that differs from run to run may reach
// the guest: seed, clock, random numbers.
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

// kernelWords for a node under TCG: a kernel that measures its clock slightly
// wrong, as without an HPET, arms timers of machines within it far in the
// future; so it is told how fast it is. And QEMU before 10.2 loses an interrupt that comes at the very moment
// a machine within is left: both change one word, and only one of them holds
// the lock. A timer set for once then never comes, and the node stands still
// until something else interrupts it; a tick that repeats costs it one tick.
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
