// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Own opens a self-built kernel. The path is that of a bzImage, or of a folder with a bzImage. The
// bzImage's folder may also have modules/, build/ and root:
//
//   - modules/ is the result of make modules_install, and has lib/modules/RELEASE;
//   - build/ is a tree for building out-of-tree modules;
//   - root is a link to a Debian root with the compiler for these modules.
func Own(path string) (Kernel, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Kernel{}, err
	}
	image := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		image = filepath.Join(path, "bzImage")
	}
	release, err := imageRelease(image)
	if err != nil {
		return Kernel{}, err
	}
	k := Kernel{Name: path, Release: release, Image: image}
	beside := func(name string) string {
		candidate := filepath.Join(filepath.Dir(image), name)
		if _, err := os.Stat(candidate); err != nil {
			return ""
		}
		return candidate
	}
	k.Modules, k.Tree, k.Root = beside("modules"), beside("build"), beside("root")
	for _, path := range []*string{&k.Modules, &k.Root} { // each may be a link
		if *path != "" {
			if *path, err = filepath.EvalSymlinks(*path); err != nil {
				return k, err
			}
		}
	}
	return k, nil
}

// imageRelease reads the kernel's release, as uname -r prints it, from a bzImage. The header of the
// boot protocol has the release's offset.
func imageRelease(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 32<<10)
	if _, err := f.ReadAt(head, 0); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	at := int(binary.LittleEndian.Uint16(head[0x20e:])) + 0x200
	if string(head[0x202:0x206]) != "HdrS" || at >= len(head) {
		return "", errors.New(path + " is not a bzImage")
	}
	release, _, _ := bytes.Cut(head[at:], []byte{' '})
	return string(release), nil
}
