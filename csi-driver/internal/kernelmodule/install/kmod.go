// SPDX-License-Identifier: Apache-2.0

// Package install loads the module of this image on a node. The module may be installed on the
// node, or prebuilt in the image for some kernels. If there is no such module, the node's DKMS
// builds the module from the image's sources. The package replaces another loaded release if
// nothing uses it. A node without a module is no failure: the package reports the reason.
package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/klog/v2"
)

// Name is the name of the module, and of its package in DKMS.
const Name = "stargatefs"

// Runner runs a program of the node, in the node's own root directory.
type Runner interface {
	Run(ctx context.Context, program string, args ...string) (string, error)
}

// Config has the paths and the permission to build.
type Config struct {
	// Host is the node's root directory in this container.
	Host string
	// Sources is the folder stargatefs-VERSION of the image. Prebuilt is a folder with
	// RELEASE/stargatefs.ko. An empty path is not used.
	Sources, Prebuilt string
	// Release is the release of the running kernel.
	Release string
	// Build allows a build. Without it, the package loads only existing modules.
	Build bool
}

// How is the way in which the kernel got its module.
type How string

const (
	WasLoaded How = "loaded before"
	Installed How = "installed on the node"
	Prebuilt  How = "prebuilt"
	Built     How = "built by the node's DKMS"
	None      How = "none"
)

// Result is the report to the operator.
type Result struct {
	How     How
	Release string // release of the kernel
	Version string // version that the loaded module reports
	Why     string // why there is no module, or why this image's module cannot be loaded yet
}

// String returns the result in one line.
func (r Result) String() string {
	s := fmt.Sprintf("%s, kernel %s", r.How, r.Release)
	if r.Version != "" {
		s += ", version " + r.Version
	}
	if r.Why != "" {
		s += ": " + r.Why
	}
	return s
}

// Ensure loads the best possible module.
func Ensure(ctx context.Context, c Config, run Runner) Result {
	n := node{c, run}
	r := Result{Release: c.Release}
	how, why, err := n.load(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The module cannot be loaded")
		r.How, r.Why = None, err.Error()
		return r
	}
	r.How, r.Version = how, n.version()
	if n.other(r.Version) {
		r.Why = fmt.Sprintf("the image has %s: %s", n.sourceVersion(), why)
	}
	return r
}

type node struct {
	Config
	run Runner
}

func (n *node) path(p string) string { return filepath.Join(n.Host, p) }

func (n *node) has(p string) bool { _, err := os.Stat(n.path(p)); return err == nil }

func (n *node) read(p string) string {
	text, err := os.ReadFile(n.path(p))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// loaded reports whether the kernel has the file system, in a module or built in.
func (n *node) loaded() bool {
	for line := range strings.Lines(n.read("/proc/filesystems")) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[len(fields)-1] == Name {
			return true
		}
	}
	return false
}

func (n *node) version() string { return n.read("/sys/module/" + Name + "/version") }

// The sources have two versions: one for DKMS, and one that the module reports when it is loaded.
func (n *node) packageVersion() string { return n.between("dkms.conf", `PACKAGE_VERSION="`, `"`) }
func (n *node) sourceVersion() string {
	return n.between("core/format/version.h", "#define SG_RELEASE\t\"", `"`)
}

// other reports whether a version differs from the version of this image.
func (n *node) other(version string) bool {
	has := n.sourceVersion()
	return has != "" && version != "" && version != has
}

// between returns the text between two words in a file of the sources.
func (n *node) between(name, before, behind string) string {
	text, err := os.ReadFile(filepath.Join(n.Sources, name))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(text), before)
	found, _, _ := strings.Cut(after, behind)
	return found
}

// load loads this image's module, or else a module of another release. why is the reason why it has
// not loaded this image's module.
func (n *node) load(ctx context.Context) (how How, why string, err error) {
	switch {
	case n.loaded() && !n.other(n.version()):
		return WasLoaded, "", nil
	case n.loaded():
		return n.exchange(ctx)
	}
	if err := n.takesModules(); err != nil {
		return None, "", err
	}
	how, err = n.provide(ctx)
	if err == nil {
		how, err = n.take(ctx, how)
	}
	if err == nil {
		return how, "", nil
	}
	// A module of another release is better than no module.
	if version, there := n.installed(ctx); there && n.other(version) && n.modprobe(ctx) == nil {
		return Installed, err.Error(), nil
	}
	return None, "", err
}

// exchange replaces a loaded module of another release by this image's module. The kernel does not
// remove a module that is in use. In this case, this image's module is installed for the next boot,
// or for the time after a drain.
func (n *node) exchange(ctx context.Context) (how How, why string, err error) {
	err = n.takesModules()
	if err == nil {
		how, err = n.provide(ctx)
	}
	if err != nil {
		return WasLoaded, err.Error(), nil
	}
	if n.locked() { // the node could lose a working module
		return WasLoaded, "drain the node, unmount its volumes, rmmod " + Name + " and modprobe " + Name + " (the kernel takes only signed modules, and may refuse this module)", nil
	}
	// This does not use modprobe -r, which finds only installed modules.
	if said, err := n.run.Run(ctx, "rmmod", Name); err != nil {
		return WasLoaded, fmt.Sprintf("drain the node, unmount its volumes, then restart the driver's pod there (%v)",
			failed("rmmod "+Name, said, err)), nil
	}
	klog.FromContext(ctx).Info("Unloaded a module of another release")
	if how, err = n.take(ctx, how); err == nil {
		return how, "the installed module is of another release", nil
	}
	if n.modprobe(ctx) == nil {
		return Installed, err.Error(), nil
	}
	return None, "", err
}

// provide installs or finds this image's module in a place from which it can be loaded.
func (n *node) provide(ctx context.Context) (How, error) {
	if version, there := n.installed(ctx); there && !n.other(version) {
		return Installed, nil
	}
	there, usable := n.hasPrebuilt()
	if usable {
		return Prebuilt, nil
	}
	err := n.build(ctx)
	if err != nil && there {
		err = fmt.Errorf("%w; the image's own module is not used: %s", err, signed)
	}
	return Built, err
}

// take loads the provided module. The kernel may refuse a prebuilt module although its release has
// the same name. The node then has to build the module for its own kernel.
func (n *node) take(ctx context.Context, how How) (How, error) {
	if how != Prebuilt {
		return how, n.modprobe(ctx)
	}
	refused := n.insmod(ctx)
	if refused == nil {
		return Prebuilt, nil
	}
	if err := n.build(ctx); err != nil {
		return None, fmt.Errorf("%w; %w", refused, err)
	}
	return Built, n.modprobe(ctx)
}

func (n *node) modprobe(ctx context.Context) error {
	if said, err := n.run.Run(ctx, "modprobe", Name); err != nil || !n.loaded() {
		return n.refused("modprobe "+Name, said, err)
	}
	return nil
}

// installed reports whether the node has a module for this kernel, and returns its version.
func (n *node) installed(ctx context.Context) (version string, there bool) {
	said, err := n.run.Run(ctx, "modinfo", "-k", n.Release, "-F", "version", Name)
	return strings.TrimSpace(said), err == nil
}

// takesModules returns the reason why the kernel would refuse a module that this node builds.
func (n *node) takesModules() error {
	if !n.has("/proc/modules") {
		return errors.New("the kernel was built without loadable modules")
	}
	if n.read("/proc/sys/kernel/modules_disabled") == "1" {
		return errors.New("the kernel takes no more modules until the next boot (kernel.modules_disabled is 1)")
	}
	return nil
}

// locked reports whether the kernel accepts only signed modules. Modules that this package builds
// are not signed.
func (n *node) locked() bool {
	lockdown := n.read("/sys/kernel/security/lockdown")
	return strings.Contains(lockdown, "[integrity]") || strings.Contains(lockdown, "[confidentiality]") ||
		n.read("/sys/module/module/parameters/sig_enforce") == "Y"
}

const signed = "the kernel takes only signed modules (secure boot): sign the module with a key that the node's firmware knows " +
	"(DKMS does with a machine owner key), or turn secure boot off"

// prebuilt returns the path of the prebuilt module for exactly this kernel.
func (n *node) prebuilt() string { return filepath.Join(n.Config.Prebuilt, n.Release, Name+".ko") }

// hasPrebuilt reports whether the prebuilt module exists and this kernel may accept it. A kernel
// that accepts only signed modules may accept a module that the node's DKMS builds and signs.
func (n *node) hasPrebuilt() (there, usable bool) {
	if n.Config.Prebuilt == "" {
		return false, false
	}
	text, err := os.ReadFile(n.prebuilt())
	if err != nil {
		return false, false
	}
	return true, !n.locked() || bytes.HasSuffix(text, []byte(signature))
}

// signature is the text at the end of a signed module.
const signature = "~Module signature appended~\n"

func (n *node) insmod(ctx context.Context) error {
	text, err := os.ReadFile(n.prebuilt())
	if err != nil {
		return err
	}
	// Programs of the node can open only the node's files.
	const dir = "/run/stargatefs"
	if err := os.MkdirAll(n.path(dir), 0o755); err != nil {
		return err
	}
	to := dir + "/" + Name + ".ko"
	if err := os.WriteFile(n.path(to), text, 0o600); err != nil {
		return err
	}
	defer os.Remove(n.path(to))
	if said, err := n.run.Run(ctx, "insmod", to); err != nil {
		return n.refused("insmod "+n.prebuilt(), said, err)
	}
	return nil
}

// refused returns the reason why a program has not loaded the module.
func (n *node) refused(what, said string, err error) error {
	if n.locked() {
		return errors.New(signed)
	}
	if err == nil {
		err = errors.New("the program succeeded, and the kernel still lacks the file system")
	}
	return failed(what, said, err)
}

// failed returns the error of a program, with its last line of output.
func failed(what, said string, err error) error {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return fmt.Errorf("%s: %s", what, last)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// build runs the node's DKMS, which knows the node's compiler and keys, and builds the module again
// for later kernels.
func (n *node) build(ctx context.Context) error {
	if !n.Build {
		return fmt.Errorf("kernel %s has no module %s %s installed, and it may not be built: run make install PART=module there", n.Release, Name, n.sourceVersion())
	}
	version := n.packageVersion()
	if version == "" {
		return fmt.Errorf("no sources of the module in %s", n.Sources)
	}
	if _, err := n.run.Run(ctx, "dkms", "--version"); err != nil {
		return fmt.Errorf("the node has no DKMS to build %s for kernel %s: apt-get install dkms linux-headers-%s", Name, n.Release, n.Release)
	}
	// A program of the node must check the path: it is a link to a path in the node's root
	// directory, not in this container's.
	if _, err := n.run.Run(ctx, "test", "-e", "/lib/modules/"+n.Release+"/build/Makefile"); err != nil {
		return fmt.Errorf("the node has no headers of kernel %s: apt-get install linux-headers-%s", n.Release, n.Release)
	}
	target := n.path("/usr/src/" + Name + "-" + version)
	if err := os.RemoveAll(target); err != nil {
		return err
	}
	if err := os.CopyFS(target, os.DirFS(n.Sources)); err != nil {
		return fmt.Errorf("sources of the module: %w", err)
	}
	pkg := Name + "/" + version
	klog.FromContext(ctx).Info("Building the module", "package", pkg, "kernel", n.Release)
	if said, err := n.run.Run(ctx, "dkms", "install", "--force", pkg, "-k", n.Release); err != nil {
		return failed("dkms install "+pkg+" -k "+n.Release, said, err)
	}
	return nil
}
