// SPDX-License-Identifier: Apache-2.0

// Package image makes the files from which guests boot: initramfs, disks and payload.
package image

import (
	"fmt"
	"io"
)

// cpio writes an initramfs in the "newc" format that the kernel unpacks.
type cpio struct {
	w     io.Writer
	inode int
	err   error
}

const (
	cpioDir  = 0o040755
	cpioFile = 0o100755
	cpioChar = 0o020600
)

func (c *cpio) dir(name string) { c.entry(name, cpioDir, nil, 0, 0) }

func (c *cpio) file(name string, data []byte) { c.entry(name, cpioFile, data, 0, 0) }

func (c *cpio) char(name string, major, minor int) { c.entry(name, cpioChar, nil, major, minor) }

// close completes the archive, and returns the first error of all its writes.
func (c *cpio) close() error {
	c.entry("TRAILER!!!", 0, nil, 0, 0)
	return c.err
}

func (c *cpio) entry(name string, mode int, data []byte, major, minor int) {
	if c.err != nil {
		return
	}
	c.inode++
	header := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		c.inode, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name)+1, 0)
	c.write(append([]byte(header+name), 0))
	c.pad(len(header) + len(name) + 1)
	c.write(data)
	c.pad(len(data))
}

func (c *cpio) pad(written int) { c.write(make([]byte, (4-written%4)%4)) }

func (c *cpio) write(p []byte) {
	if c.err == nil {
		_, c.err = c.w.Write(p)
	}
}
