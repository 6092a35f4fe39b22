// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"

	"stargate/e2e/internal/agent"
	"stargate/e2e/internal/kernel"
)

// bootModules are the modules that a guest needs before modprobe is available: for its disks and
// their file system, the rig's channel, and the shared range. The kernel should have each missing
// module built in. ext4 requests crc32c by the crypto API, so its dependencies do not show crc32c.
var bootModules = []string{
	"virtio_pci", "virtio_blk", "virtio_console",
	"crc32c_generic", "crc32c_intel", "ext4",
	"nfit", "nd_e820", "nd_pmem",
}

// Initramfs writes a kernel's initramfs, which has the agent and the modules.
func Initramfs(k kernel.Kernel, agentBinary, path string) error {
	program, err := os.ReadFile(agentBinary)
	if err != nil {
		return err
	}
	modules, err := k.ModulesInOrder(bootModules)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buffer := bufio.NewWriter(f)
	archive := &cpio{w: buffer}
	archive.dir("dev")
	archive.char("dev/console", 5, 1)
	archive.char("dev/null", 1, 3)
	archive.dir("newroot")
	archive.file("init", program)
	archive.dir(filepath.Base(agent.BootModules))
	for i, m := range modules {
		archive.file(fmt.Sprintf("%s/%03d-%s.ko", filepath.Base(agent.BootModules), i, m.Name), m.Data)
	}
	if err := archive.close(); err != nil {
		return err
	}
	if err := buffer.Flush(); err != nil {
		return err
	}
	return f.Close()
}
