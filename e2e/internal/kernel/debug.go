// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"stargate/e2e/internal/cache"
	"stargate/e2e/internal/debian"
	"stargate/e2e/internal/say"
	"stargate/e2e/internal/versions"
)

// DebugName is the debug kernel's name for users.
const DebugName = "debug"

// Debug returns the debug kernel. If necessary, it builds the kernel from Debian's source with the
// configuration file at config, and resumes an interrupted build.
func Debug(c cache.Dir, v versions.Set, config string) (Kernel, error) {
	fragment, err := os.ReadFile(config)
	if err != nil {
		return Kernel{}, err
	}
	root, source, err := debugRoot(c, v)
	if err != nil {
		return Kernel{}, err
	}
	dir, err := c.Resume("kernel-debug", []string{recipe, root, string(fragment)}, func(tmp string) error {
		defer say.Step("building the debug kernel (about half an hour on two cores)")()
		return buildDebug(tmp, root, source, config)
	})
	if err != nil {
		return Kernel{}, err
	}
	return Own(dir)
}

// debugRoot returns a root with the compiler and the kernel's source, and the path of the source's
// archive.
func debugRoot(c cache.Dir, v versions.Set) (root, source string, err error) {
	suite, err := v.Get("KERNEL_DEBUG_SUITE")
	if err != nil {
		return "", "", err
	}
	source, err = v.Get("KERNEL_DEBUG_SOURCE")
	if err != nil {
		return "", "", err
	}
	packages, err := v.List("KERNEL_DEBUG_BUILD_PACKAGES")
	if err != nil {
		return "", "", err
	}
	description := debian.Root{Suite: suite, Variant: "essential", Packages: append(packages, source)}
	root, err = c.Entry("kernel-source", description.Inputs(), func(tmp string) error {
		defer say.Step("fetching the debug kernel's source and compiler")()
		return description.Make(c, v, tmp)
	})
	return root, "/usr/src/" + source + ".tar.xz", err
}

// buildDebug makes, in dir, the files that Own expects. It skips the steps that an interrupted
// build has completed.
func buildDebug(dir, root, source, config string) error {
	tree := filepath.Join(dir, "build")
	if err := os.MkdirAll(tree, 0o755); err != nil {
		return err
	}
	k := Kernel{Root: root, Tree: tree}
	fragment, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	steps := []struct{ name, script string }{
		{"unpack", "tar -xf " + source + " --strip-components=1"},
		{"configure", "make -s tinyconfig && scripts/kconfig/merge_config.sh -m .config rig.config && make -s olddefconfig && " + checkConfig},
		{"compile", fmt.Sprintf("make -j%d bzImage modules", runtime.NumCPU())},
		{"install", "rm -rf rig.modules && make -s modules_install INSTALL_MOD_PATH=$PWD/rig.modules && cp arch/x86/boot/bzImage rig.bzImage"},
		// Keeps the files that a build of a module needs, and removes the kernel's own
		// objects.
		{"prune", "find . -name '*.o' ! -path './scripts/*' ! -path './tools/*' -delete; rm -f vmlinux vmlinux.unstripped"},
	}
	if err := os.WriteFile(filepath.Join(tree, "rig.config"), fragment, 0o644); err != nil {
		return err
	}
	for _, step := range steps {
		done := filepath.Join(dir, "done."+step.name)
		if _, err := os.Stat(done); err == nil {
			continue
		}
		if err := runStep(k, dir, step.name, step.script); err != nil {
			return err
		}
		if err := os.WriteFile(done, nil, 0o644); err != nil {
			return err
		}
	}
	return arrange(dir, root)
}

// checkConfig fails if a line of the fragment is missing in the result. Without this check, one of
// the kernel's checkers could be off, and no error would show it.
const checkConfig = `
lost=$(grep -E '^CONFIG_|is not set' rig.config | grep -vxFf .config || true)
if [ -n "$lost" ]; then echo "not in the configuration: $lost"; exit 1; fi`

// runStep runs a step in the root, and writes its output to a file. If the step fails, runStep
// shows the output.
func runStep(k Kernel, dir, name, script string) error {
	log, err := os.Create(filepath.Join(dir, "log."+name))
	if err != nil {
		return err
	}
	defer log.Close()
	out := &progress{out: log, what: "debug kernel: " + name}
	if err := k.Shell(k.Tree, out, "sh", "-ec", "cd /mnt/build\n"+script); err != nil {
		text, e := os.ReadFile(log.Name())
		if e != nil {
			return e
		}
		if len(text) > 4000 {
			text = text[len(text)-4000:]
		}
		os.Stderr.Write(text)
		return fmt.Errorf("debug kernel: %s: %w", name, err)
	}
	return nil
}

// progress passes output on, and from time to time prints that the build continues.
type progress struct {
	out   io.Writer
	what  string
	lines int
}

func (p *progress) Write(data []byte) (int, error) {
	before := p.lines
	p.lines += bytes.Count(data, []byte{'\n'})
	if p.lines/500 > before/500 {
		say.Line("%s: %d lines of output", p.what, p.lines)
	}
	return p.out.Write(data)
}

// arrange moves the results to the names that Own reads.
func arrange(dir, root string) error {
	release, err := onlyModules(filepath.Join(dir, "build/rig.modules"))
	if err != nil {
		return err
	}
	for name, target := range map[string]string{
		"bzImage": "build/rig.bzImage",
		"modules": "build/rig.modules/lib/modules/" + release,
		"root":    root,
	} {
		link := filepath.Join(dir, name)
		if err := os.RemoveAll(link); err != nil {
			return err
		}
		if err := os.Symlink(target, link); err != nil {
			return err
		}
	}
	return nil
}
