// SPDX-License-Identifier: Apache-2.0

// Package kmod sees to it that a node's kernel has the module: loaded, from what the node has installed,
// from a folder of modules that somebody has built, or built by the node's own DKMS from the sources in
// the image. It never fails a node: where there can be no module it says why.
package kmod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/klog/v2"
)

// Name of the module, and of the package that DKMS knows.
const Name = "stargatefs"

// Runner runs a program of the node, in the node's own root.
type Runner interface {
	Run(ctx context.Context, program string, args ...string) (string, error)
}

// Config is where everything is.
type Config struct {
	// Host is the node's root as we see it.
	Host string
	// Sources is the folder stargatefs-VERSION of the image; Prebuilt has RELEASE/stargatefs.ko.
	Sources, Prebuilt string
	// Release is that of the running kernel.
	Release string
	// Build allows to build; without, what there is is loaded.
	Build bool
}

// How the kernel has come to its module.
type How string

const (
	WasLoaded How = "loaded before"
	Installed How = "installed on the node"
	Prebuilt  How = "prebuilt"
	Built     How = "built by the node's DKMS"
	None      How = "none"
)

// Result is what an operator is told.
type Result struct {
	How     How
	Release string // of the kernel
	Version string // of the module that is loaded, as it says itself
	Why     string // there is none; or what has to be done for this image's to be loaded
}

// String is the result in one line.
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

// Ensure does what can be done.
func Ensure(ctx context.Context, c Config, run Runner) Result {
	n := node{c, run}
	r := Result{Release: c.Release}
	how, err := n.load(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "There is no module")
		r.How, r.Why = None, err.Error()
		return r
	}
	r.How, r.Version = how, n.version()
	if has := n.sourceVersion(); how == WasLoaded && has != "" && r.Version != "" && r.Version != has {
		r.Why = fmt.Sprintf("the image has %s: drain the node, unmount its volumes, and modprobe -r %s, for that to be taken", has, Name)
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

// loaded: the kernel has it, as a module or built in.
func (n *node) loaded() bool {
	for line := range strings.Lines(n.read("/proc/filesystems")) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[len(fields)-1] == Name {
			return true
		}
	}
	return false
}

func (n *node) version() string { return n.read("/sys/module/" + Name + "/version") }

// Of the sources: the version that DKMS knows them by, and that which the module itself will say.
func (n *node) packageVersion() string { return n.between("dkms.conf", `PACKAGE_VERSION="`, `"`) }
func (n *node) sourceVersion() string {
	return n.between("core/version.h", "#define SG_RELEASE\t\"", `"`)
}

// between is what stands there in a file of the sources.
func (n *node) between(name, before, behind string) string {
	text, err := os.ReadFile(filepath.Join(n.Sources, name))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(text), before)
	found, _, _ := strings.Cut(after, behind)
	return found
}

func (n *node) load(ctx context.Context) (How, error) {
	if n.loaded() {
		return WasLoaded, nil
	}
	if err := n.takesModules(); err != nil {
		return None, err
	}
	_, there := n.installed(ctx)
	said, err := n.run.Run(ctx, "modprobe", Name)
	if err == nil && n.loaded() {
		return Installed, nil
	}
	if there {
		return None, n.refused("modprobe "+Name, said, err)
	}
	if how, err := n.prebuilt(ctx); how == Prebuilt || err != nil {
		return how, err
	}
	if !n.Build {
		return None, fmt.Errorf("kernel %s has no module %s installed, and none is to be built: make dkms-install there", n.Release, Name)
	}
	return n.build(ctx)
}

// installed: the node has a module for this kernel, and that is its version.
func (n *node) installed(ctx context.Context) (version string, there bool) {
	said, err := n.run.Run(ctx, "modinfo", "-k", n.Release, "-F", "version", Name)
	return strings.TrimSpace(said), err == nil
}

// takesModules says why the kernel would take none that is built here.
func (n *node) takesModules() error {
	if !n.has("/proc/modules") {
		return errors.New("the kernel was built without loadable modules")
	}
	if n.read("/proc/sys/kernel/modules_disabled") == "1" {
		return errors.New("the kernel takes no more modules (kernel.modules_disabled is 1) until it is booted again")
	}
	return nil
}

// locked: only signed modules are taken, and those built here are not.
func (n *node) locked() bool {
	lockdown := n.read("/sys/kernel/security/lockdown")
	return strings.Contains(lockdown, "[integrity]") || strings.Contains(lockdown, "[confidentiality]") ||
		n.read("/sys/module/module/parameters/sig_enforce") == "Y"
}

const signed = "the kernel takes signed modules alone (secure boot): sign it with a key that the node's firmware knows " +
	"(DKMS does with a machine owner key), or turn secure boot off"

// prebuilt loads one for exactly this kernel, if the image or the operator has brought one.
func (n *node) prebuilt(ctx context.Context) (How, error) {
	from := filepath.Join(n.Config.Prebuilt, n.Release, Name+".ko")
	text, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return None, nil
	}
	if err != nil {
		return None, err
	}
	// Programs of the node see the node's files.
	const dir = "/run/stargatefs"
	if err := os.MkdirAll(n.path(dir), 0o755); err != nil {
		return None, err
	}
	to := dir + "/" + Name + ".ko"
	if err := os.WriteFile(n.path(to), text, 0o600); err != nil {
		return None, err
	}
	defer os.Remove(n.path(to))
	if said, err := n.run.Run(ctx, "insmod", to); err != nil {
		return None, n.refused("insmod "+from, said, err)
	}
	return Prebuilt, nil
}

// refused says why a program has not given the kernel its module, in the program's words.
func (n *node) refused(what, said string, err error) error {
	if err == nil {
		err = errors.New("the kernel does not have it all the same")
	}
	if n.locked() {
		return errors.New(signed)
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return fmt.Errorf("%s: %s", what, last)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// build has the node's DKMS do it: it knows the node's compiler and keys, and builds it anew for kernels
// that come later.
func (n *node) build(ctx context.Context) (How, error) {
	version := n.packageVersion()
	if version == "" {
		return None, fmt.Errorf("no sources of the module in %s", n.Sources)
	}
	if _, err := n.run.Run(ctx, "dkms", "--version"); err != nil {
		return None, fmt.Errorf("the node has no DKMS to build %s for kernel %s: apt-get install dkms linux-headers-%s", Name, n.Release, n.Release)
	}
	// The node looks itself: this is a link, to a place of its root and not of ours.
	if _, err := n.run.Run(ctx, "test", "-e", "/lib/modules/"+n.Release+"/build/Makefile"); err != nil {
		return None, fmt.Errorf("the node has no headers of kernel %s: apt-get install linux-headers-%s", n.Release, n.Release)
	}
	target := n.path("/usr/src/" + Name + "-" + version)
	if err := os.RemoveAll(target); err != nil {
		return None, err
	}
	if err := os.CopyFS(target, os.DirFS(n.Sources)); err != nil {
		return None, fmt.Errorf("sources of the module: %w", err)
	}
	pkg := Name + "/" + version
	klog.FromContext(ctx).Info("Building the module", "package", pkg, "kernel", n.Release)
	if said, err := n.run.Run(ctx, "dkms", "install", "--force", pkg, "-k", n.Release); err != nil {
		return None, n.refused("dkms install "+pkg+" -k "+n.Release, said, err)
	}
	if said, err := n.run.Run(ctx, "modprobe", Name); err != nil || !n.loaded() {
		return None, n.refused("modprobe "+Name, said, err)
	}
	return Built, nil
}
