// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"syscall"

	"stargate/e2e/internal/debian"
	"stargate/e2e/internal/kernel"
	"stargate/e2e/internal/lab"
)

// doctor prints the capabilities of this host, and the missing requirements.
func doctor(r rig, args []string) error {
	if err := parse(flag.NewFlagSet("doctor", flag.ContinueOnError), "", 0, 0, args); err != nil {
		return err
	}
	fmt.Printf("CPUs:        %d\n", runtime.NumCPU())
	for _, place := range []string{"/dev/shm", string(r.cache)} {
		if err := os.MkdirAll(place, 0o755); err != nil {
			return err
		}
		var st syscall.Statfs_t
		if err := syscall.Statfs(place, &st); err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		fmt.Printf("free:        %d MiB in %s\n", int64(st.Bavail)*st.Bsize>>20, place)
	}
	missing := debian.Missing(needForRoots)
	switch {
	case len(missing) == 0:
		fmt.Println("packages:    all there")
	case os.Getuid() == 0:
		fmt.Printf("packages: missing; the rig installs them when it needs them: %s\n", strings.Join(missing, " "))
	default:
		fmt.Printf("packages:    missing; as root: apt-get install %s\n", strings.Join(missing, " "))
	}
	if os.Getuid() != 0 {
		fmt.Println("user:        not root: only root can make Debian roots and build modules")
	}
	if err := r.doctorCache(); err != nil {
		return err
	}
	if len(missing) > 0 && os.Getuid() != 0 {
		return errors.New("the rig cannot test the accelerator without these packages")
	}
	k, err := r.stock(r.versions["KERNEL_DEFAULT"])
	if err != nil {
		return err
	}
	assets, err := lab.Prepare(r.cache, r.versions, []kernel.Kernel{k})
	if err != nil {
		return err
	}
	version, err := assets.QEMU.Version()
	if err != nil {
		return err
	}
	fmt.Printf("emulator:    QEMU %s\n", version)
	if version, err = assets.QEMU.ServerVersion(); err != nil {
		return err
	}
	fmt.Printf("shares by:   QEMU (9p), virtiofsd %s\n", version)
	fmt.Printf("guests with: %s\n", assets.Accel)
	fmt.Printf("nodes with:  %s\n", assets.Accel.ForNode())
	return nil
}

// doctorCache prints the number and the size of the cache's entries of each kind.
func (r rig) doctorCache() error {
	entries, err := r.cache.Entries("")
	if err != nil {
		return err
	}
	count, size := map[string]int{}, map[string]int64{}
	var kinds []string
	for _, entry := range entries {
		name := filepath.Base(entry)
		kind := name[:strings.LastIndexByte(name, '-')]
		if count[kind] == 0 {
			kinds = append(kinds, kind)
		}
		count[kind]++
		size[kind] += diskUsage(entry)
	}
	sort.Strings(kinds)
	for _, kind := range kinds {
		fmt.Printf("cached:      %-13s %2d, %5d MiB\n", kind, count[kind], size[kind]>>20)
	}
	return nil
}

// diskUsage returns the size of a folder's allocated blocks, because the disks of guests are
// sparse.
func diskUsage(dir string) int64 {
	var total int64
	// Does not count unreadable files.
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				total += st.Blocks * 512
			}
		}
		return nil
	})
	return total
}
