// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"strings"
)

// Accel is how QEMU executes the guest's instructions.
type Accel struct {
	Name   string // kvm or tcg
	ICount bool   // repeatable instruction counts (tcg, one CPU)
}

// args are QEMU's. Without erms and fsrm kernels copy by words: rep movsb is
// slow under TCG. With icount nothing that differs from run to run may reach
// the guest: seed, clock, random numbers.
func (a Accel) args() []string {
	switch {
	case a.ICount:
		return []string{"-accel", "tcg", "-icount", "shift=0,sleep=off", "-seed", "1",
			"-rtc", "base=2026-01-01,clock=vm", "-cpu", "max,-rdrand,-rdseed,-erms,-fsrm"}
	case a.Name == "kvm":
		return []string{"-accel", "kvm", "-cpu", "host"}
	}
	return []string{"-accel", "tcg,thread=multi", "-cpu", "max,-erms,-fsrm"}
}

func (a Accel) kernelWords() []string {
	if a.ICount {
		return []string{"nokaslr", "norandmaps"}
	}
	return nil
}

func (a Accel) String() string {
	return fmt.Sprintf("accelerator %s (%s)", a.Name, strings.Join(append(a.args(), a.kernelWords()...), " "))
}
