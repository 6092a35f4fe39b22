// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"stargate/e2e/internal/proc"
)

// Share is a host folder that guests also have, by a file system of QEMU's. Benchmarks compare a
// volume with it.
type Share struct {
	Kind string // one of ShareKinds
	Dir  string
}

// ShareKinds are the kinds, in the order in which users see them.
var ShareKinds = []string{"9p", "9p-loose", "virtiofs", "virtiofs-auto"}

// shareWays are their settings. One variant of each makes guests see changes by others. The other
// one lets guests keep what they have read: cache=loose for 9p, the default for virtiofs.
var shareWays = map[string]struct {
	daemon  []string // options of virtiofsd; none: QEMU serves the folder itself
	modules string   // for the guest to load
	kind    string   // the file system's name there
	options string   // of its mount
}{
	"9p":            {nil, "9pnet_virtio 9p", "9p", "trans=virtio,version=9p2000.L,cache=none,msize=512000"},
	"9p-loose":      {nil, "9pnet_virtio 9p", "9p", "trans=virtio,version=9p2000.L,cache=loose,msize=512000"},
	"virtiofs":      {[]string{"--cache=never"}, "virtiofs", "virtiofs", ""},
	"virtiofs-auto": {[]string{"--cache=auto"}, "virtiofs", "virtiofs", ""},
}

// MountWords are, for the guest: modules to load, the file system, the share's name, and options.
func (s Share) MountWords() (modules, kind, source, options string) {
	way := shareWays[s.Kind]
	return way.modules, way.kind, s.tag(), way.options
}

// Settings returns the guests' settings for the share.
func (s Share) Settings() string {
	way := shareWays[s.Kind]
	return strings.Join(append(append([]string{}, way.daemon...), way.options), " ")
}

func (s Share) tag() string { return "rig-" + s.Kind }

// byDaemon reports whether virtiofsd serves it. virtiofsd then reads and writes the guest's memory,
// so the memory must be shared with virtiofsd.
func (s Share) byDaemon() bool { return shareWays[s.Kind].daemon != nil }

// ShareMemory makes dir a file system in memory that only programs started from now on can see. It
// ends with the last of them.
func ShareMemory(dir string) error {
	return proc.InStarter(func() error {
		if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
			return fmt.Errorf("a mount namespace for --share: %w", err)
		}
		// A mount that ends outside ends here, too; ours are not visible outside.
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
			return fmt.Errorf("keeping mounts to ourselves: %w", err)
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount of tmpfs on %s: %w", dir, err)
		}
		return nil
	})
}

// MakeFolder makes the share's folder, once ShareMemory is there.
func (s Share) MakeFolder() error {
	return proc.InStarter(func() error { return os.Mkdir(s.Dir, 0o755) })
}

// serve starts a server of a share for one guest, with which it ends; QEMU gets the connection.
func (q QEMU) serve(s Share, log string) (*os.File, error) {
	listener, err := net.Listen("unix", "") // named by the kernel; no file
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	connection, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	passive, err := listener.(*net.UnixListener).File()
	if err != nil {
		return nil, err
	}
	defer passive.Close()
	said, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer said.Close()

	cmd := q.command("usr/libexec/virtiofsd", append([]string{"--fd=3", "--shared-dir=" + s.Dir, "--sandbox=none"},
		shareWays[s.Kind].daemon...)...)
	cmd.ExtraFiles, cmd.Stderr = []*os.File{passive}, said
	if err := proc.Start(cmd, syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("starting virtiofsd: %w", err)
	}
	// It ends when QEMU does; its log has its messages.
	go func() { _ = cmd.Wait() }()
	return connection.(*net.UnixConn).File()
}

// serveAll does so for all of a guest's shares that need it.
func (q QEMU) serveAll(spec Spec, console string) ([]*os.File, error) {
	var connections []*os.File
	for _, s := range spec.Shares {
		if !s.byDaemon() {
			continue
		}
		log := filepath.Join(filepath.Dir(console), spec.Name+"."+s.Kind+".log")
		c, err := q.serve(s, log)
		if err != nil {
			closeAll(connections)
			return nil, err
		}
		connections = append(connections, c)
	}
	return connections, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// shareArgs attach a guest's shares. Connections to daemons are inherited, in their order, from
// descriptor fdShares on.
func (s Spec) shareArgs() []string {
	var args []string
	fd := fdShares
	for _, share := range s.Shares {
		if !share.byDaemon() {
			args = append(args, "-fsdev", fmt.Sprintf("local,id=%s,path=%s,security_model=passthrough,multidevs=remap", share.tag(), quoted(share.Dir)),
				"-device", fmt.Sprintf("virtio-9p-pci,fsdev=%s,mount_tag=%[1]s", share.tag()))
			continue
		}
		args = append(args, "-chardev", fmt.Sprintf("socket,id=%s,fd=%d", share.tag(), fd),
			"-device", fmt.Sprintf("vhost-user-fs-pci,chardev=%s,tag=%[1]s", share.tag()))
		fd++
	}
	if fd > fdShares {
		args = append(args, "-object", fmt.Sprintf("memory-backend-memfd,id=ram,size=%dM,share=on", s.MemoryMiB),
			"-machine", "memory-backend=ram")
	}
	return args
}
