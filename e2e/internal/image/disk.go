// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"

	"stargate/e2e/internal/debian"
)

// Ext4 makes a file system with the content of dir and `room` free bytes. The file system has no
// journal, because guests write only to a temporary copy of it.
func Ext4(dir, path string, room int64) error {
	size, files, err := measure(dir)
	if err != nil {
		return err
	}
	size += size/8 + files*1024 + 16<<20 + room
	return debian.Run(exec.Command("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0",
		"-N", fmt.Sprint(files+files/2+10000), "-E", "lazy_itable_init=1,root_owner=0:0",
		"-d", dir, path, fmt.Sprintf("%dk", size/1024)))
}

// measure returns the size of a folder's content in whole blocks, and the number of its files.
func measure(dir string) (size, files int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		files++
		if entry.Type().IsRegular() {
			size += (info.Size() + 4095) &^ 4095
		} else {
			size += 4096
		}
		return nil
	})
	return size, files, err
}
