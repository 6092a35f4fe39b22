// SPDX-License-Identifier: Apache-2.0

package stargate

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	fsMagic = 0x53544152
	semFile = ".stargate/semaphores"
)

// unescape replaces "\040" with a space.
func unescape(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if c, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// firstVolume returns the mount point of the first volume that is mounted completely.
func firstVolume() (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && fields[3] == "/" && strings.Contains(lines.Text(), " - stargatefs ") {
			return unescape(fields[4]), nil
		}
	}
	return "", syscall.ENODEV
}

func deviceOf(path string) (uint64, error) {
	var st syscall.Stat_t
	err := syscall.Stat(path, &st)
	return uint64(st.Dev), err
}

// rootOf returns the mount point of the volume on which a path is.
func rootOf(path string) (string, error) {
	var st syscall.Statfs_t
	root, err := filepath.Abs(path)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", syscall.ENODEV
	}
	if err != nil {
		return "", err
	}
	if err := syscall.Statfs(root, &st); err != nil {
		return "", err
	}
	if st.Type != fsMagic {
		return "", syscall.ENODEV
	}
	dev, err := deviceOf(root)
	if err != nil {
		return "", err
	}
	for root != "/" {
		up := filepath.Dir(root)
		if d, err := deviceOf(up); err != nil || d != dev {
			break
		}
		root = up
	}
	return root, nil
}

// openVolume opens the semaphores of the volume on which a path is. For an empty path, it uses the
// first mounted volume.
func openVolume(path string) (int, error) {
	var root string
	var err error
	if path == "" {
		root, err = firstVolume()
	} else {
		root, err = rootOf(path)
	}
	if err != nil {
		return -1, err
	}
	fd, err := syscall.Open(filepath.Join(root, semFile), syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err == syscall.ENOENT {
		err = syscall.EXDEV
	}
	return fd, err
}
