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

// Share is a folder of this host that guests can mount, by 9p or virtiofs. Benchmarks compare a
// volume with it.
type Share struct {
	Kind string // one of ShareKinds
	Dir  string
}

// ShareKinds are the kinds of shares, in the order in which users see them.
var ShareKinds = []string{"9p", "9p-loose", "virtiofs", "virtiofs-auto"}

// shareWays are the settings of each kind. With 9p and virtiofs, guests see the changes of other
// guests. With 9p-loose (cache=loose) and virtiofs-auto (the default of virtiofs), guests cache
// what they have read.
var shareWays = map[string]struct {
	daemon  []string // virtiofsd's options; nil: QEMU itself serves the folder
	modules string   // the modules that the guest must load
	kind    string   // the name of the guest's file system
	options string   // the options of the guest's mount
}{
	"9p":            {nil, "9pnet_virtio 9p", "9p", "trans=virtio,version=9p2000.L,cache=none,msize=512000"},
	"9p-loose":      {nil, "9pnet_virtio 9p", "9p", "trans=virtio,version=9p2000.L,cache=loose,msize=512000"},
	"virtiofs":      {[]string{"--cache=never"}, "virtiofs", "virtiofs", ""},
	"virtiofs-auto": {[]string{"--cache=auto"}, "virtiofs", "virtiofs", ""},
}

// MountWords returns what a guest needs for the mount: the modules, the file system, the share's
// name, and the options.
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

// byDaemon reports whether virtiofsd serves the share. virtiofsd reads and writes the guest's
// memory, so QEMU must share the memory with it.
func (s Share) byDaemon() bool { return shareWays[s.Kind].daemon != nil }

// ShareMemory mounts a file system in memory at dir. Only programs that the rig starts later can
// see it. It ends with the last of these programs.
func ShareMemory(dir string) error {
	return proc.InStarter(func() error {
		if err := syscall.Unshare(syscall.CLONE_NEWNS); err != nil {
			return fmt.Errorf("a mount namespace for --share: %w", err)
		}
		// An unmount outside takes effect here, too. The rig's mounts are not visible
		// outside.
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
			return fmt.Errorf("keeping mounts to ourselves: %w", err)
		}
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount of tmpfs on %s: %w", dir, err)
		}
		return nil
	})
}

// MakeFolder makes the share's folder, in the file system that ShareMemory has mounted.
func (s Share) MakeFolder() error {
	return proc.InStarter(func() error { return os.Mkdir(s.Dir, 0o755) })
}

// serve starts a virtiofsd that serves a share to one guest, and returns its socket for QEMU. The
// virtiofsd ends with that guest.
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
	// virtiofsd ends with QEMU. Its messages are in its log.
	go func() { _ = cmd.Wait() }()
	return connection.(*net.UnixConn).File()
}

// serveAll calls serve for each share of a guest that needs virtiofsd.
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

// shareArgs returns the arguments that attach a guest's shares. QEMU inherits the connections to
// the daemons, in their order, from the descriptor fdShares on.
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
