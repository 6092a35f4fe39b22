// SPDX-License-Identifier: Apache-2.0

// Package lab makes the guests of a run, operates them, and checks them for errors.
package lab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"stargate/e2e/internal/agent"
	"stargate/e2e/internal/cache"
	"stargate/e2e/internal/debian"
	"stargate/e2e/internal/image"
	"stargate/e2e/internal/kernel"
	"stargate/e2e/internal/say"
	"stargate/e2e/internal/versions"
	"stargate/e2e/internal/vm"
)

// Assets are the cached files from which guests are made.
type Assets struct {
	Cache    cache.Dir
	Versions versions.Set
	QEMU     vm.QEMU
	Accel    vm.Accel

	systems []system // guest 1 gets the first, guest 2 the second, and so on in a circle
	root    string
	node    nodeAssets
}

// system is a kernel with its initramfs and modules.
type system struct {
	kernel.Kernel
	initramfs string
	modules   string
}

// rootRoom is the free space on a guest's root.
const rootRoom = 4 << 30

// Prepare fills the caches of the emulator and of initramfs, and tests the accelerator.
func Prepare(c cache.Dir, v versions.Set, kernels []kernel.Kernel) (*Assets, error) {
	a := &Assets{Cache: c, Versions: v}
	var err error
	if a.QEMU, err = vm.Provide(c, v); err != nil {
		return nil, err
	}
	for _, k := range kernels {
		initramfs, err := makeInitramfs(c, k)
		if err != nil {
			return nil, err
		}
		a.systems = append(a.systems, system{Kernel: k, initramfs: initramfs})
	}
	a.Accel, err = a.probe()
	return a, err
}

// PrepareDisks fills the caches of the guests' disks.
func (a *Assets) PrepareDisks(packages []string) error {
	var err error
	if a.root, err = makeRoot(a.Cache, a.Versions, packages); err != nil {
		return err
	}
	for i := range a.systems {
		s := &a.systems[i]
		if s.modules, err = makeModules(a.Cache, s.Kernel); err != nil {
			return err
		}
	}
	return nil
}

func makeInitramfs(c cache.Dir, k kernel.Kernel) (string, error) {
	program, err := agentBinary()
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	inputs := []string{string(content), k.Image, stamp(k.Image)}
	dir, err := c.Entry("initramfs", inputs, func(tmp string) error {
		return image.Initramfs(k, program, filepath.Join(tmp, "initramfs"))
	})
	return filepath.Join(dir, "initramfs"), err
}

// agentBinary returns the path of the agent, which is next to the rig's own program.
func agentBinary() (string, error) {
	self, err := os.Executable()
	return filepath.Join(filepath.Dir(self), "agent"), err
}

// stamp returns a text that changes with the file. It is for files whose names do not depend on
// their inputs.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	return strconv.FormatInt(info.ModTime().UnixNano(), 10) + " " + strconv.FormatInt(info.Size(), 10)
}

func makeRoot(c cache.Dir, v versions.Set, packages []string) (string, error) {
	suite, err := v.Get("GUEST_SUITE")
	if err != nil {
		return "", err
	}
	base, err := v.List("GUEST_PACKAGES")
	if err != nil {
		return "", err
	}
	root := debian.Root{Suite: suite, Variant: "essential", Packages: debian.Union(base, packages)}
	dir, err := c.Entry("guest", root.Inputs(), func(tmp string) error {
		defer say.Step("making the guests' root (%s, %v)", suite, root.Packages)()
		tree := filepath.Join(tmp, "tree")
		if err := root.Make(c, v, tree); err != nil {
			return err
		}
		if err := image.Ext4(tree, filepath.Join(tmp, "root.ext4"), rootRoom); err != nil {
			return err
		}
		return os.RemoveAll(tree)
	})
	return filepath.Join(dir, "root.ext4"), err
}

func makeModules(c cache.Dir, k kernel.Kernel) (string, error) {
	if k.Modules == "" {
		return "", nil
	}
	dir, err := c.Entry("modules", []string{k.Modules, stamp(k.Modules)}, func(tmp string) error {
		defer say.Step("making the disk with the modules of %s", k.Release)()
		return image.Ext4(k.Modules, filepath.Join(tmp, "modules.ext4"), 0)
	})
	return filepath.Join(dir, "modules.ext4"), err
}

// probeLimit is the time limit for the boot of one guest. With a working accelerator, the boot
// takes two seconds.
const probeLimit = 20 * time.Second

// probe tests whether guests boot under KVM. Even if /dev/kvm exists, they may not boot.
func (a *Assets) probe() (vm.Accel, error) {
	tcg := vm.Accel{Name: "tcg"}
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return tcg, nil
	}
	f.Close()
	host, err := os.ReadFile("/proc/version")
	if err != nil {
		return tcg, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return tcg, err
	}
	dir, err := a.Cache.Entry("accelerator", []string{string(host), string(boot)}, func(tmp string) error {
		defer say.Step("testing whether guests boot under KVM (at most %s)", probeLimit)()
		answer := "kvm"
		if err := a.boots(vm.Accel{Name: "kvm"}, tmp); err != nil {
			answer = "tcg"
			say.Line("/dev/kvm exists, but does not work: %v", err)
		}
		return os.WriteFile(filepath.Join(tmp, "name"), []byte(answer), 0o644)
	})
	if err != nil {
		return tcg, err
	}
	name, err := os.ReadFile(filepath.Join(dir, "name"))
	return vm.Accel{Name: string(name)}, err
}

// boots returns an error unless a guest answers.
func (a *Assets) boots(accel vm.Accel, dir string) error {
	console := filepath.Join(dir, "console")
	g, err := vm.Start(a.QEMU, vm.Spec{
		Name: "probe", Accel: accel, Kernel: a.systems[0].Image, Initramfs: a.systems[0].initramfs,
		Append: "rig.probe=1", CPUs: 1, MemoryMiB: 512,
	}, console)
	if err != nil {
		return err
	}
	select {
	case <-g.Ended():
	case <-time.After(probeLimit):
		g.Kill()
	}
	log, err := os.ReadFile(console)
	if err == nil && !bytes.Contains(log, []byte(agent.ProbeAnswer)) {
		err = fmt.Errorf("a guest does not boot. %s", g.Errors())
	}
	return err
}
