// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"stargate/e2e/internal/image"
	"stargate/e2e/internal/kernel"
	"stargate/e2e/internal/lab"
	"stargate/e2e/internal/vm"
)

// toolNames lists the programs that every guest has.
var toolNames = []string{"mkfs.stargatefs", "fsck.stargatefs", "stargatectl", "stargate-sem", "stargate-ring",
	"stargate-net"}

// project returns the top folder of the project.
func (r rig) project() string { return filepath.Dir(r.home) }

func (r rig) tool(name string) string { return filepath.Join(r.project(), "build/tools", name) }

// build compiles the module and the tools if necessary, and adds them to the payload.
func (s *session) build(payload image.Payload) error {
	for _, k := range s.kernels {
		module, err := s.buildModule(k)
		if err != nil {
			return err
		}
		payload[strings.TrimPrefix(lab.ModuleFor(k.Release), "/")] = module
	}
	if err := s.buildTools(); err != nil {
		return err
	}
	for _, tool := range toolNames {
		payload["usr/local/sbin/"+tool] = s.tool(tool)
	}
	return nil
}

// buildModule compiles the module for a kernel, and returns its path.
func (s *session) buildModule(k kernel.Kernel) (string, error) {
	name := k.Name
	if k.Tree != "" {
		name = "own-" + k.Release
	}
	output := filepath.Join(s.project(), "build/module", name)
	var messages bytes.Buffer
	build := kernel.Build{Kernel: k, Source: filepath.Join(s.project(), "kernel/module"), Output: output}
	if err := build.Run(&messages); err != nil {
		os.Stderr.Write(messages.Bytes())
		return "", fmt.Errorf("building the module for %s: %w", k.Release, err)
	}
	return filepath.Join(output, "stargatefs.ko"), nil
}

// buildTools compiles the tools with make. This make does not depend on a make that runs the rig.
func (s *session) buildTools() error {
	cmd := exec.Command("make", "--no-print-directory", "tools")
	cmd.Dir = s.project()
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "MAKE") && !strings.HasPrefix(entry, "MFLAGS") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
		return fmt.Errorf("make tools: %w", err)
	}
	return nil
}

// format makes the volume, once for all guests. With a node, the volume also allows all map modes
// for the host.
func (s *session) format() error {
	s.fsck = s.tool("fsck.stargatefs")
	args := []string{"--phys", fmt.Sprintf("%#x", vm.Base), s.shared.Path()}
	if s.node {
		args = append([]string{"--param", "host-splice"}, args...)
	}
	mkfs := exec.Command(s.tool("mkfs.stargatefs"), args...)
	if out, err := mkfs.CombinedOutput(); err != nil {
		return fmt.Errorf("formatting the volume: %w\n%s", err, out)
	}
	return nil
}
