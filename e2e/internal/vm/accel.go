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

// ForNode returns the accelerator of a node on this host. Under KVM, a node can run VMs only if
// nesting is enabled. Under QEMU's emulation, it always can.
func (a Accel) ForNode() Accel { return a.forNode(nestedParameters) }

// nestedParameters matches the files that show whether nesting is enabled. Each kind of processor
// has its own file.
const nestedParameters = "/sys/module/kvm_*/parameters/nested"

func (a Accel) forNode(parameters string) Accel {
	if a.Name != "kvm" {
		return Accel{Name: a.Name, Node: true}
	}
	// Glob returns an error only for an invalid pattern, and this pattern is valid.
	paths, _ := filepath.Glob(parameters)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if word := strings.TrimSpace(string(text)); err == nil && (word == "Y" || word == "1") {
			return Accel{Name: a.Name, Node: true}
		}
	}
	return Accel{Name: "tcg", Node: true}
}

// args returns QEMU's arguments. They switch erms and fsrm off, so that kernels copy by words: with
// these features, kernels use rep movsb, which is slow under TCG. With icount, all inputs of the
// guest must be the same in each run: seed, clock and random numbers.
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

// kernelWords returns words for the kernel command line. With icount, they make addresses the same
// in each run. In a node under TCG, they avoid two errors.
//
// Without an HPET, a kernel measures the frequency of its clock slightly wrong, and then sets
// timers of its VMs far in the future. So the rig tells the kernel the frequency. And QEMU before
// 10.2 loses an interrupt that arrives while a VM inside exits: both change the same word, and only
// one of them holds the lock. If that was a one-shot timer, the node would stop until another
// interrupt. So the node uses a periodic tick, which only loses one tick.
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
