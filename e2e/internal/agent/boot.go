// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Disks, in the order of QEMU's command line. Every guest has a payload. A kernel without modules
// has no disk of modules.
const (
	RootDisk    = "/dev/vda"
	PayloadDisk = "/dev/vdb"
	ModulesDisk = "/dev/vdc"
)

// Port is the name of the channel's virtio serial port.
const Port = "rig"

// BootModules is the folder of the initramfs with the kernel modules to load, in the order of their
// names.
const BootModules = "/boot-modules"

const newRoot = "/newroot"

// ProbeAnswer is the only output of a guest that the rig boots to test whether guests boot. After
// that line the guest switches itself off.
const ProbeAnswer = "rig-agent: this machine boots guests"

// Probe reports whether this guest must only print ProbeAnswer.
func Probe() bool { return option("rig.probe") == "1" }

// Boot turns the initramfs into the guest's system.
func Boot() error {
	early := []mount{
		{"devtmpfs", "/dev", "devtmpfs", 0, ""},
		{"proc", "/proc", "proc", 0, ""},
		{"sysfs", "/sys", "sysfs", 0, ""},
	}
	if err := mountAll(early); err != nil {
		return err
	}
	if err := loadModules(BootModules); err != nil {
		return err
	}
	if Probe() {
		return nil
	}
	if err := waitFor(RootDisk); err != nil {
		return err
	}
	if err := mountAll([]mount{{RootDisk, newRoot, "ext4", syscall.MS_NOATIME, "noinit_itable"}}); err != nil {
		return err
	}
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		if err := syscall.Mount(dir, newRoot+dir, "", syscall.MS_MOVE, ""); err != nil {
			return fmt.Errorf("moving %s: %w", dir, err)
		}
	}
	if err := switchRoot(); err != nil {
		return err
	}
	return system()
}

func switchRoot() error {
	if err := os.Chdir(newRoot); err != nil {
		return err
	}
	if err := syscall.Mount(".", "/", "", syscall.MS_MOVE, ""); err != nil {
		return fmt.Errorf("moving the root: %w", err)
	}
	if err := syscall.Chroot("."); err != nil {
		return err
	}
	return os.Chdir("/")
}

// system does the work of an init system, as far as a VM for tests needs it.
func system() error {
	late := []mount{
		{"tmpfs", "/run", "tmpfs", 0, "mode=755"},
		{"tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777"},
		{"tmpfs", "/tmp", "tmpfs", 0, "mode=1777"},
		{"devpts", "/dev/pts", "devpts", 0, "gid=5,mode=620,ptmxmode=666"},
		{"cgroup2", "/sys/fs/cgroup", "cgroup2", 0, ""},
		{"debugfs", "/sys/kernel/debug", "debugfs", 0, ""},
		{"tracefs", "/sys/kernel/tracing", "tracefs", 0, ""},
	}
	if err := mountAll(late); err != nil {
		return err
	}
	if option("rig.modules") == "1" {
		release, err := os.ReadFile("/proc/sys/kernel/osrelease")
		if err != nil {
			return err
		}
		where := filepath.Join("/lib/modules", strings.TrimSpace(string(release)))
		if err := mountAll([]mount{{ModulesDisk, where, "ext4", syscall.MS_RDONLY, ""}}); err != nil {
			return err
		}
	}
	for link, target := range map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0",
		"/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2", "/etc/mtab": "/proc/self/mounts"} {
		if err := os.Symlink(target, link); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	name := option("rig.name")
	if err := syscall.Sethostname([]byte(name)); err != nil {
		return err
	}
	hosts := fmt.Sprintf("127.0.0.1 localhost %s\n", name)
	if err := os.WriteFile("/etc/hosts", []byte(hosts), 0o644); err != nil {
		return err
	}
	if err := loopbackUp(); err != nil {
		return err
	}
	if err := Unpack(PayloadDisk, "/"); err != nil {
		return err
	}
	// From now on, every kernel message goes to the console, which the rig reads.
	return os.WriteFile("/proc/sys/kernel/printk", []byte("8 4 1 7\n"), 0o644)
}

type mount struct {
	source, target, kind string
	flags                uintptr
	options              string
}

func mountAll(list []mount) error {
	for _, m := range list {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		err := syscall.Mount(m.source, m.target, m.kind, m.flags, m.options)
		if err == syscall.ENODEV && m.source == m.kind {
			continue // a self-built kernel may lack debugfs or tracefs
		}
		if err != nil {
			return fmt.Errorf("mount of %s on %s: %w", m.source, m.target, err)
		}
	}
	return nil
}

func loadModules(dir string) error {
	names, err := filepath.Glob(dir + "/*.ko")
	if err != nil {
		return err
	}
	sort.Strings(names)
	for _, name := range names {
		if skip := option("rig.skip"); skip != "" && strings.HasSuffix(name, "-"+skip+".ko") {
			continue // the kernel gives the range to another driver
		}
		if err := loadModule(name); err != nil {
			return fmt.Errorf("loading %s: %w", name, err)
		}
	}
	return nil
}

func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	const finitModule = 313 // finit_module(2) on x86-64; package syscall has no name for it
	empty := []byte{0}
	_, _, errno := syscall.Syscall(finitModule, f.Fd(), uintptr(unsafe.Pointer(&empty[0])), 0)
	if errno != 0 && errno != syscall.EEXIST {
		return errno
	}
	return nil
}

// waitFor waits until a device exists, because its driver may still be probing.
func waitFor(path string) error {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not appear", path)
		}
	}
}

// option returns VALUE of the word key=VALUE on the kernel's command line.
func option(key string) string {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return ""
	}
	for _, word := range strings.Fields(string(line)) {
		name, value, _ := strings.Cut(word, "=")
		if name == key {
			return value
		}
	}
	return ""
}

// loopbackUp starts the only network of the guest.
func loopbackUp() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer syscall.Close(fd)
	var request struct {
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:], "lo")
	request.flags = syscall.IFF_UP | syscall.IFF_RUNNING
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return fmt.Errorf("starting lo: %w", errno)
	}
	return nil
}

// Reap does the remaining work of process 1: it starts the agent, and reaps orphans.
func Reap(args ...string) error {
	agent := exec.Command("/proc/self/exe", args...)
	agent.Stdout, agent.Stderr = os.Stdout, os.Stderr
	if err := agent.Start(); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if pid == agent.Process.Pid {
			return fmt.Errorf("the agent ended with status %d", status.ExitStatus())
		}
	}
}
