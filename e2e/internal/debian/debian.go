// SPDX-License-Identifier: Apache-2.0

// Package debian makes Debian roots of any suite with mmdebstrap.
package debian

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"stargate/e2e/internal/cache"
	"stargate/e2e/internal/proc"
	"stargate/e2e/internal/say"
	"stargate/e2e/internal/versions"
)

// Root describes a Debian root.
type Root struct {
	Suite    string
	Variant  string // of mmdebstrap: "extract" only unpacks; "essential", "apt" and others also configure
	Packages []string
	Hooks    []string // mmdebstrap's customize hooks
}

// Inputs returns all inputs of a root, for the cache's key.
func (r Root) Inputs() []string {
	return append([]string{r.Suite, r.Variant, strings.Join(r.Packages, ",")}, r.Hooks...)
}

// Make fills dir with the root.
func (r Root) Make(c cache.Dir, v versions.Set, dir string) error {
	rings, err := newKeyrings(c, v)
	if err != nil {
		return err
	}
	ring, err := rings.of(r.base())
	if err != nil {
		return err
	}
	sources, err := sources(v, ring, r.Suite)
	if err != nil {
		return err
	}
	return r.makeFrom(sources, dir)
}

// base returns the release to which the suite belongs.
func (r Root) base() string { return strings.TrimSuffix(r.Suite, "-backports") }

// makeFrom fills dir with the root, from these lines of sources.list.
func (r Root) makeFrom(sources []string, dir string) error {
	args := []string{"--quiet", "--variant=" + r.Variant, "--include=" + strings.Join(r.Packages, ","),
		`--aptopt=Acquire::Retries "3"`}
	if r.base() != r.Suite {
		// apt installs packages of backports only on request.
		args = append(args, fmt.Sprintf("--aptopt=APT::Default-Release %q", r.Suite))
	}
	for _, hook := range r.Hooks {
		args = append(args, "--customize-hook="+hook)
	}
	cmd := alone("mmdebstrap", append(append(args, r.base(), dir), sources...)...)
	tmp, err := scratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	return Run(cmd)
}

// scratch makes a folder for temporary files. If a signal kills this process, `rig clean` finds the
// folder by its name, and sees from its file pid that no process uses it.
func scratch() (string, error) {
	dir, err := os.MkdirTemp("", "stargate-rig-fetch-")
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "pid"), []byte(fmt.Sprint(os.Getpid())), 0o644)
}

// alone returns a command that runs a program in new namespaces. Without them, the rig could not
// remove a folder in which a killed program has mounts. Also, children of a killed program would
// continue to fill the folder during the next attempt.
func alone(program string, args ...string) *exec.Cmd {
	return exec.Command("unshare", append([]string{
		"--mount", "--pid", "--fork", "--kill-child", "--mount-proc", program}, args...)...)
}

// sources returns the lines of sources.list for a suite. The keyring ring has the suite's keys.
func sources(v versions.Set, ring, suite string) ([]string, error) {
	mirror, err := v.Get("DEBIAN_MIRROR")
	if err != nil {
		return nil, err
	}
	security, err := v.Get("DEBIAN_SECURITY_MIRROR")
	if err != nil {
		return nil, err
	}
	base := Root{Suite: suite}.base()
	lines := []string{source(ring, mirror, base), source(ring, mirror, base+"-updates"), source(ring, security, base+"-security")}
	if base != suite {
		lines = append(lines, source(ring, mirror, suite))
	}
	return lines, nil
}

// source returns one line of sources.list. The line names the keyring, because Ubuntu's apt has
// only Ubuntu's keys in its own keyring.
func source(ring, mirror, suite string) string {
	return fmt.Sprintf("deb [signed-by=%s] %s %s main", ring, mirror, suite)
}

// Run runs a command, and prints its output only if it fails. The command ends with the rig.
func Run(cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := proc.Start(cmd, syscall.SIGKILL)
	if err == nil {
		err = cmd.Wait()
	}
	return shown(cmd, out.Bytes(), err)
}

func shown(cmd *exec.Cmd, out []byte, err error) error {
	if err == nil {
		return nil
	}
	os.Stderr.Write(out)
	return fmt.Errorf("%s: %w", cmd.Args[0], err)
}

// Need ensures that programs are installed. Each key is a program or, with a slash, a file, and
// each value is its package. For root, Need installs the missing packages. Other users get one line
// with the packages' names.
func Need(programs map[string]string) error {
	missing := Missing(programs)
	if len(missing) == 0 {
		return nil
	}
	install := "apt-get install -y " + strings.Join(missing, " ")
	if os.Getuid() != 0 {
		return fmt.Errorf("missing packages; as root: %s", install)
	}
	defer say.Step("%s", install)()
	script := "export DEBIAN_FRONTEND=noninteractive; apt-get update -qq; exec " + install
	// dpkg must finish its work on this host even if the rig is killed.
	cmd := exec.Command("sh", "-c", script)
	out, err := cmd.CombinedOutput()
	return shown(cmd, out, err)
}

// Missing returns the packages, sorted by name, whose programs are missing.
func Missing(programs map[string]string) []string {
	names := map[string]bool{}
	for program, pkg := range programs {
		// For a file, this only checks that the path exists.
		if _, err := exec.LookPath(program); errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			names[pkg] = true
		}
	}
	return sorted(names)
}
