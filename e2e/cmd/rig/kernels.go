// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stargate/e2e/internal/debian"
	"stargate/e2e/internal/kernel"
	"stargate/e2e/internal/lab"
	"stargate/e2e/internal/vm"
)

// needForRoots maps packages to the programs that make Debian roots.
var needForRoots = map[string]string{
	"mmdebstrap":   "mmdebstrap",
	"mke2fs":       "e2fsprogs",
	"xz":           "xz-utils",
	debian.Keyring: "debian-archive-keyring", // Ubuntu does not install it by default
}

// stock returns a stock kernel, with the headers and compiler for its modules.
func (r rig) stock(series string) (kernel.Kernel, error) {
	if err := debian.Need(needForRoots); err != nil {
		return kernel.Kernel{}, err
	}
	return kernel.Stock(r.cache, r.versions, series)
}

// kernel returns the kernel that a user names: a series, `debug`, or a path.
func (r rig) kernel(name string) (kernel.Kernel, error) {
	if name == kernel.DebugName {
		if err := debian.Need(needForRoots); err != nil {
			return kernel.Kernel{}, err
		}
		return kernel.Debug(r.cache, r.versions, filepath.Join(r.home, "kernel-debug.config"))
	}
	if strings.ContainsRune(name, '/') {
		return kernel.Own(name)
	}
	return r.stock(name)
}

// fetch fills the caches, so that later commands work without a network.
func fetch(r rig, args []string) error {
	flags := flag.NewFlagSet("fetch", flag.ContinueOnError)
	var packages list
	flags.Var(&packages, "pkgs", "also make the root of guests with these Debian packages")
	if err := parse(flags, "[SERIES]...", 0, -1, args); err != nil {
		return err
	}
	series := flags.Args()
	for _, name := range series {
		if err := kernel.Known(r.versions, name); err != nil {
			return misused("fetch: %v", err)
		}
	}
	if len(series) == 0 {
		var err error
		if series, err = r.versions.List("KERNELS"); err != nil {
			return err
		}
	}
	if err := checkPackages(packages); err != nil {
		return misused("fetch: %v", err)
	}
	var kernels []kernel.Kernel
	for _, name := range series {
		k, err := r.stock(name)
		if err != nil {
			return err
		}
		kernels = append(kernels, k)
		fmt.Printf("kernel %s: %s, headers and compiler in %s\n", name, k.Release, k.Root)
	}
	qemu, err := vm.Provide(r.cache, r.versions)
	if err != nil {
		return err
	}
	version, err := qemu.Version()
	if err != nil {
		return err
	}
	server, err := qemu.ServerVersion()
	if err != nil {
		return err
	}
	fmt.Printf("QEMU %s, virtiofsd %s\n", version, server)
	if packages == nil {
		return nil
	}
	assets, err := lab.Prepare(r.cache, r.versions, kernels)
	if err != nil {
		return err
	}
	return assets.PrepareDisks(packages)
}

// debugKernel builds the debug kernel, if necessary, and prints its path.
func debugKernel(r rig, args []string) error {
	if err := parse(flag.NewFlagSet("debug-kernel", flag.ContinueOnError), "", 0, 0, args); err != nil {
		return err
	}
	k, err := r.kernel(kernel.DebugName)
	if err != nil {
		return err
	}
	fmt.Println(k.Name)
	return nil
}

// buildModule compiles an out-of-tree module for a stock kernel.
func buildModule(r rig, args []string) error {
	flags := flag.NewFlagSet("build-module", flag.ContinueOnError)
	name := flags.String("kernel", r.versions["KERNEL_DEFAULT"], "kernel to build for: 6.1, 6.12, 7.2, debug or a path")
	sparse := flags.Bool("sparse", false, "also check every file with sparse")
	if err := parse(flags, "SRCDIR OUTDIR [MAKE-ARGUMENT]...", 2, -1, args); err != nil {
		return err
	}
	if err := checkFolder("build-module: SRCDIR", flags.Arg(0), "Kbuild", "Makefile"); err != nil {
		return err
	}
	if info, err := os.Stat(flags.Arg(1)); err == nil && !info.IsDir() {
		return misused("build-module: OUTDIR: %s is not a folder", flags.Arg(1))
	}
	if err := r.checkKernel(*name); err != nil {
		return err
	}
	k, err := r.kernel(*name)
	if err != nil {
		return err
	}
	build := kernel.Build{Kernel: k, Source: flags.Arg(0), Output: flags.Arg(1), Sparse: *sparse, Make: flags.Args()[2:]}
	return build.Run(os.Stderr)
}

// kernelBuildDir prints the path of the headers, for other build systems.
func kernelBuildDir(r rig, args []string) error {
	flags := flag.NewFlagSet("kernel-build-dir", flag.ContinueOnError)
	if err := parse(flags, "6.1|6.12|7.2|debug|PATH", 1, 1, args); err != nil {
		return err
	}
	if err := r.checkKernel(flags.Arg(0)); err != nil {
		return err
	}
	k, err := r.kernel(flags.Arg(0))
	if err != nil {
		return err
	}
	fmt.Printf("root=%s\ndir=%s\nrelease=%s\n", k.Root, k.BuildDir(), k.Release)
	return nil
}
