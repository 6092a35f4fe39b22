// SPDX-License-Identifier: Apache-2.0

// Package vm runs guests in QEMU.
package vm

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"stargate/e2e/internal/agent"
	"stargate/e2e/internal/cache"
	"stargate/e2e/internal/debian"
	"stargate/e2e/internal/say"
	"stargate/e2e/internal/versions"
)

// QEMU is the emulator, unpacked from Debian packages. The dynamic loader from these packages
// starts QEMU with the libraries from these packages. So QEMU runs on any host without an
// installation or a chroot.
type QEMU struct {
	root string
}

// Provide unpacks QEMU into the cache.
func Provide(c cache.Dir, v versions.Set) (QEMU, error) {
	suite, err := v.Get("VMM_SUITE")
	if err != nil {
		return QEMU{}, err
	}
	packages, err := v.List("VMM_PACKAGES")
	if err != nil {
		return QEMU{}, err
	}
	root := debian.Root{Suite: suite, Variant: "extract", Packages: packages}
	dir, err := c.Entry("qemu", root.Inputs(), func(tmp string) error {
		defer say.Step("fetching QEMU (%s)", suite)()
		return root.Make(c, v, tmp)
	})
	return QEMU{dir}, err
}

// At returns the QEMU that is unpacked in the folder root.
func At(root string) QEMU { return QEMU{root} }

// Root returns the folder in which QEMU is unpacked.
func (q QEMU) Root() string { return q.root }

// program is the emulator's path in its root.
const program = "usr/bin/qemu-system-x86_64"

func (q QEMU) libraries() string { return filepath.Join(q.root, "usr/lib/x86_64-linux-gnu") }

// words returns the words of a command that calls one of the root's programs.
func (q QEMU) words(program string, args ...string) []string {
	loader := filepath.Join(q.root, "usr/lib64/ld-linux-x86-64.so.2")
	return append([]string{loader, "--library-path", q.libraries(), filepath.Join(q.root, program)}, args...)
}

func (q QEMU) environment() []string {
	return []string{"PATH=/usr/bin:/bin", "QEMU_MODULE_DIR=" + filepath.Join(q.libraries(), "qemu")}
}

// command returns a command that calls one of the root's programs.
func (q QEMU) command(program string, args ...string) *exec.Cmd {
	words := q.words(program, args...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = q.environment()
	return cmd
}

// Exec replaces this process by the emulator, with its firmware, an accelerator, and the caller's
// arguments.
func (q QEMU) Exec(accel Accel, args, env []string) error {
	words := q.words(program, append(append(q.firmware(), accel.args()...), args...)...)
	return syscall.Exec(words[0], words, append(env, q.environment()...))
}

// firmware returns the arguments with the emulator's search path for firmware.
func (q QEMU) firmware() []string {
	return []string{"-L", filepath.Join(q.root, "usr/share/seabios"), "-L", filepath.Join(q.root, "usr/share/qemu")}
}

// Version returns QEMU's version.
func (q QEMU) Version() (string, error) {
	out, err := q.command(program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("qemu --version: %w", err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(line, "QEMU emulator version "), nil
}

// ServerVersion returns virtiofsd's version.
func (q QEMU) ServerVersion() (string, error) {
	out, err := q.command("usr/libexec/virtiofsd", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("virtiofsd --version: %w", err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(out), "virtiofsd ")), nil
}

// Spec describes a guest's VM.
type Spec struct {
	Name      string
	Accel     Accel
	Kernel    string
	Initramfs string
	Append    string // additional words for the kernel's command line
	Disks     Disks
	CPUs      int
	MemoryMiB int
	Range     *Range   // shared memory, or nil
	Words     []string // QEMU's words for the range, instead of the rig's own
	Shares    []Share
	Net       *Net   // or nil
	Bells     string // socket of the exchange of doorbells, or empty
}

// BellPeers is the number of systems that an exchange of doorbells connects.
const BellPeers = 16

// bellArgs connect the guest with an exchange of doorbells (`stargatectl bells`).
func (s Spec) bellArgs() []string {
	if s.Bells == "" {
		return nil
	}
	return []string{
		"-chardev", "socket,id=bells,path=" + quoted(s.Bells),
		"-device", fmt.Sprintf("ivshmem-doorbell,chardev=bells,vectors=%d", BellPeers),
	}
}

// Disks are files with file systems. QEMU discards the guest's writes to them, except writes to
// Kept. The guest finds Kept by its serial number.
type Disks struct {
	Root, Payload, Modules string
	More                   []string
	Kept                   string
}

// keptArgs returns the arguments for the disk Kept, which survives a power cut of the guest. Data
// that has reached QEMU survives, because this host keeps its power. Data that is only in the
// guest's memory is lost.
func (d Disks) keptArgs() []string {
	if d.Kept == "" {
		return nil
	}
	return []string{
		"-drive", "if=none,id=kept,format=raw,cache=unsafe,discard=unmap,file=" + quoted(d.Kept),
		"-device", "virtio-blk-pci,drive=kept,serial=kept",
	}
}

// list returns the disks that exist, in the guest's order.
func (d Disks) list() []string {
	var list []string
	for _, file := range append([]string{d.Root, d.Payload, d.Modules}, d.More...) {
		if file != "" {
			list = append(list, file)
		}
	}
	return list
}

// Device returns the guest's path of the disk More[i].
func (d Disks) Device(i int) string {
	n := len(d.list()) - len(d.More) + i
	return "/dev/vd" + string(rune('a'+n))
}

// processors returns the value of -smp. If a VM can only have one processor, QEMU translates locked
// instructions into plain instructions. But this VM shares its range with other VMs. So it can
// always get a second processor, except with icount, which needs a single processor.
func (s Spec) processors() string {
	if s.Accel.ICount || s.CPUs > 1 {
		return fmt.Sprint(s.CPUs)
	}
	return fmt.Sprintf("%d,maxcpus=2", s.CPUs)
}

// ends are the descriptions of QEMU's connections, as words for QEMU.
type ends struct {
	console, monitor, channel string // options of a chardev
	memory                    string // the path of the shared range
}

func (s Spec) args(q QEMU, uuid string, e ends) []string {
	memory := fmt.Sprintf("%dM", s.MemoryMiB)
	machine := "q35,usb=off,smbus=off,sata=off,vmport=off"
	var extra []string
	if s.Words != nil {
		extra = append(extra, s.Words...)
	} else if s.Range != nil {
		machine += ",nvdimm=on"
		memory += fmt.Sprintf(",slots=2,maxmem=%dM", s.Range.maxMemoryMiB())
		extra = append(extra, s.Range.args(e.memory)...)
	}
	args := []string{
		"-name", s.Name, "-uuid", uuid, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", machine, "-m", memory, "-smp", s.processors(),
		"-kernel", s.Kernel, "-initrd", s.Initramfs, "-append", s.commandLine(),
		"-chardev", "file,id=console," + e.console, "-serial", "chardev:console",
		"-chardev", "socket,id=monitor," + e.monitor, "-mon", "chardev=monitor,mode=control",
		"-chardev", "socket,id=channel," + e.channel,
		"-device", "virtio-serial-pci", "-device", "virtserialport,chardev=channel,name=" + agent.Port,
	}
	args = append(append(args, q.firmware()...), s.Accel.args()...)
	args = append(append(args, extra...), s.shareArgs()...)
	args = append(append(args, s.Net.args(s.Name)...), s.bellArgs()...)
	for i, file := range s.Disks.list() {
		args = append(args,
			"-drive", fmt.Sprintf("if=none,id=disk%d,format=raw,snapshot=on,file=%s", i, quoted(file)),
			"-device", fmt.Sprintf("virtio-blk-pci,drive=disk%d", i))
	}
	return append(args, s.Disks.keptArgs()...)
}

// quoted returns a path as one of several values of an option. There, a comma ends a value, so QEMU
// needs two commas for one.
func quoted(path string) string { return strings.ReplaceAll(path, ",", ",,") }

// UUID returns the UUID of a VM. It stays the same after a restart, but differs between runs. By
// it, a guest finds its slot in a volume's mount table.
func UUID(run, name string) string {
	h := sha256.Sum256([]byte(run + "/" + name))
	h[6], h[8] = h[6]&0x0f|0x40, h[8]&0x3f|0x80 // marks a random UUID (version 4)
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// commandLine returns the command line of the guest's kernel. During the boot, only warnings reach
// the console, because the serial line is slow. After the boot, the agent lets all messages
// through. An oops ends the guest at once. Because the host may be busy, the limits for lockups are
// long, and the kernel does not check whether timer interrupts and clocks are consistent.
func (s Spec) commandLine() string {
	words := []string{"console=ttyS0", "loglevel=5", "oops=panic", "panic=-1", "no_timer_check", "tsc=reliable",
		"watchdog_thresh=60", "rcupdate.rcu_cpu_stall_timeout=120", "log_buf_len=4M", "rig.name=" + s.Name}
	if s.Disks.Modules != "" {
		words = append(words, "rig.modules=1")
	}
	if s.Range != nil {
		words = append(words, s.Range.kernelWords()...)
	}
	words = append(append(words, s.Accel.kernelWords()...), s.Append)
	return strings.TrimSpace(strings.Join(words, " "))
}
