// SPDX-License-Identifier: Apache-2.0

// Package kernel provides the kernels of guests: self-built kernels, and Debian's stock kernels
// with the headers and compiler for modules.
package kernel

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"stargate/e2e/internal/cache"
	"stargate/e2e/internal/chroot"
	"stargate/e2e/internal/debian"
	"stargate/e2e/internal/say"
	"stargate/e2e/internal/versions"
)

// recipe is the version of the layout of a cached kernel. Change it together with the layout.
const recipe = "1"

// chrootEnv is the environment of commands in a build root.
var chrootEnv = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C"}

// Kernel is a kernel that guests can boot.
type Kernel struct {
	Name    string // the user's name for it: 6.12, or a path
	Release string // as uname -r prints it
	Image   string // file that QEMU boots
	Modules string // the kernel's folder /lib/modules/RELEASE, or empty
	Root    string // root with headers and compiler for building modules, or empty
	Tree    string // a self-built kernel's tree for building modules, or empty
	Ccache  string // ccache's folder for compiled objects of modules, or empty
}

// BuildDir returns the folder in the root that a build of modules needs (make -C).
func (k Kernel) BuildDir() string {
	if k.Tree != "" {
		return "/mnt/build"
	}
	return filepath.Join("/usr/src", "linux-headers-"+k.Release)
}

// Stock returns Debian's kernel of that series, and fills the cache if necessary.
func Stock(c cache.Dir, v versions.Set, series string) (Kernel, error) {
	headers, image, err := roots(v, series)
	if err != nil {
		return Kernel{}, err
	}
	inputs := append(append([]string{recipe}, headers.Inputs()...), image.Inputs()...)
	dir, err := c.Entry("kernel-"+series, inputs, func(tmp string) error {
		defer say.Step("fetching kernel %s (%s: image, headers, compiler)", series, image.Suite)()
		return fill(c, v, series, headers, image, tmp)
	})
	if err != nil {
		return Kernel{}, err
	}
	release, err := os.ReadFile(filepath.Join(dir, "release"))
	if err != nil {
		return Kernel{}, err
	}
	return Kernel{
		Name:    series,
		Release: string(release),
		Image:   filepath.Join(dir, "vmlinuz"),
		Modules: filepath.Join(dir, "modules"),
		Root:    filepath.Join(dir, "root"),
		Ccache:  filepath.Join(string(c), "ccache"),
	}, nil
}

// Known returns an error if versions.env has no such series.
func Known(v versions.Set, series string) error {
	_, _, err := roots(v, series)
	return err
}

// roots describes the two roots of a stock kernel. In the first root, the headers and the compiler
// are installed. In the second root, the image is only unpacked, because its installation would
// build an initrd, which no guest needs.
func roots(v versions.Set, series string) (headers, image debian.Root, err error) {
	prefix := "KERNEL_" + strings.ReplaceAll(series, ".", "_") + "_"
	suite, err := v.Get(prefix + "SUITE")
	if err != nil {
		return headers, image, fmt.Errorf("unknown kernel %q: use one of %s, debug, or a path", series, v["KERNELS"])
	}
	tools, err := v.List("KERNEL_BUILD_PACKAGES")
	if err != nil {
		return headers, image, err
	}
	headersPkg, err := v.Get(prefix + "HEADERS")
	if err != nil {
		return headers, image, err
	}
	imagePkg, err := v.Get(prefix + "IMAGE")
	headers = debian.Root{Suite: suite, Variant: "essential", Packages: append([]string{headersPkg}, tools...)}
	image = debian.Root{Suite: suite, Variant: "extract", Packages: []string{imagePkg}}
	return headers, image, err
}

// fill makes the cached folder, with root/, vmlinuz, modules/, config and release.
func fill(c cache.Dir, v versions.Set, series string, headers, image debian.Root, dir string) error {
	unpacked := filepath.Join(dir, "image")
	if err := image.Make(c, v, unpacked); err != nil {
		return err
	}
	release, err := onlyModules(unpacked)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(release, series+".") {
		return fmt.Errorf("the archive gave kernel %s for series %s: correct versions.env", release, series)
	}
	root := filepath.Join(dir, "root")
	if err := headers.Make(c, v, root); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "usr/src/linux-headers-"+release)); err != nil {
		return fmt.Errorf("the archive gave image %s but headers of another release (try again): %w", release, err)
	}
	if err := take(unpacked, release, dir); err != nil {
		return err
	}
	if err := depmod(root, dir, release); err != nil {
		return err
	}
	if err := os.RemoveAll(unpacked); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "release"), []byte(release), 0o644)
}

// onlyModules returns the release of the modules in a root, which must be of one kernel.
func onlyModules(root string) (string, error) {
	list, err := filepath.Glob(filepath.Join(root, modulesGlob(root), "*"))
	if err != nil {
		return "", err
	}
	if len(list) != 1 {
		return "", fmt.Errorf("expected the modules of one kernel in %s, found %v", root, list)
	}
	return filepath.Base(list[0]), nil
}

// modulesGlob returns a pattern for the folders of modules. Before Debian merged /lib into
// /usr/lib, they were in /lib.
func modulesGlob(root string) string {
	if _, err := os.Stat(filepath.Join(root, "usr/lib/modules")); err == nil {
		return "usr/lib/modules"
	}
	return "lib/modules"
}

// take moves the image, the configuration and the modules to their places. Kernels from 7.x on have
// the image and the configuration next to the modules. Older kernels have them in /boot.
func take(unpacked, release, dir string) error {
	modules := filepath.Join(unpacked, modulesGlob(unpacked), release)
	for name, places := range map[string][]string{
		"vmlinuz": {filepath.Join(modules, "vmlinuz"), filepath.Join(unpacked, "boot/vmlinuz-"+release)},
		"config":  {filepath.Join(modules, "config"), filepath.Join(unpacked, "boot/config-"+release)},
	} {
		if err := moveFirst(places, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return os.Rename(modules, filepath.Join(dir, "modules"))
}

func moveFirst(from []string, to string) error {
	for _, path := range from {
		if _, err := os.Stat(path); err == nil {
			return os.Rename(path, to)
		}
	}
	return fmt.Errorf("the kernel's packages have none of %v", from)
}

// depmod writes the indexes that modprobe needs in the guest. The packages were only unpacked, and
// only their installation would write the indexes.
func depmod(root, dir, release string) error {
	mounted := filepath.Join("/mnt/lib/modules", release)
	if err := os.MkdirAll(filepath.Join(root, mounted), 0o755); err != nil {
		return err
	}
	return chroot.Command{
		Root:  root,
		Binds: map[string]string{mounted: filepath.Join(dir, "modules")},
		Dir:   "/",
		Args:  []string{"depmod", "-b", "/mnt", release},
		Env:   chrootEnv,
	}.Run(os.Stderr)
}

// Shell runs a command in the root for building modules. The source tree src is mounted at
// /mnt/src.
func (k Kernel) Shell(src string, out io.Writer, args ...string) error {
	if k.Root == "" {
		return fmt.Errorf("kernel %s has no root to build modules in", k.Name)
	}
	binds := map[string]string{"/mnt/src": src}
	if k.Tree != "" {
		binds["/mnt/build"] = k.Tree
	}
	env := chrootEnv
	if k.Ccache != "" {
		if err := os.MkdirAll(k.Ccache, 0o755); err != nil {
			return err
		}
		binds["/mnt/ccache"] = k.Ccache
		// The first folder of the path has links to ccache with the compilers' names.
		env = append([]string{"CCACHE_DIR=/mnt/ccache", "PATH=/usr/lib/ccache:/usr/sbin:/usr/bin:/sbin:/bin"}, chrootEnv[1:]...)
	}
	for inside := range binds {
		if err := os.MkdirAll(filepath.Join(k.Root, inside), 0o755); err != nil {
			return err
		}
	}
	return chroot.Command{Root: k.Root, Binds: binds, Dir: "/mnt/src", Args: args, Env: env}.Run(out)
}
