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

// QEMU is the emulator, unpacked from Debian packages. It is started through
// its own dynamic loader with its own libraries, so it runs on any machine
// without being installed and without a chroot.
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

// At is a QEMU that is unpacked in a folder already.
func At(root string) QEMU { return QEMU{root} }

// Root is the folder that QEMU is unpacked in.
func (q QEMU) Root() string { return q.root }

// program is the emulator, within its root.
const program = "usr/bin/qemu-system-x86_64"

func (q QEMU) libraries() string { return filepath.Join(q.root, "usr/lib/x86_64-linux-gnu") }

// words call one of the root's programs.
func (q QEMU) words(program string, args ...string) []string {
	loader := filepath.Join(q.root, "usr/lib64/ld-linux-x86-64.so.2")
	return append([]string{loader, "--library-path", q.libraries(), filepath.Join(q.root, program)}, args...)
}

func (q QEMU) environment() []string {
	return []string{"PATH=/usr/bin:/bin", "QEMU_MODULE_DIR=" + filepath.Join(q.libraries(), "qemu")}
}

// command prepares a call of one of the root's programs.
func (q QEMU) command(program string, args ...string) *exec.Cmd {
	words := q.words(program, args...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = q.environment()
	return cmd
}

// Exec becomes the emulator, with its firmware, its accelerator, and with
// arguments of somebody else's.
func (q QEMU) Exec(accel Accel, args, env []string) error {
	words := q.words(program, append(append(q.firmware(), accel.args()...), args...)...)
	return syscall.Exec(words[0], words, append(env, q.environment()...))
}

// firmware is where the emulator looks for what machines boot by.
func (q QEMU) firmware() []string {
	return []string{"-L", filepath.Join(q.root, "usr/share/seabios"), "-L", filepath.Join(q.root, "usr/share/qemu")}
}

// Version is what QEMU says of itself.
func (q QEMU) Version() (string, error) {
	out, err := q.command(program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("qemu --version: %w", err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimPrefix(line, "QEMU emulator version "), nil
}

// ServerVersion is what virtiofsd says of itself.
func (q QEMU) ServerVersion() (string, error) {
	out, err := q.command("usr/libexec/virtiofsd", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("virtiofsd --version: %w", err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(out), "virtiofsd ")), nil
}

// Spec describes a guest's machine.
type Spec struct {
	Name      string
	Accel     Accel
	Kernel    string
	Initramfs string
	Append    string // more words for the kernel's command line
	Disks     Disks
	CPUs      int
	MemoryMiB int
	Range     *Range   // shared memory, or nil
	Words     []string // how QEMU is to have the range, instead of the rig's own words for it
	Shares    []Share
	Net       *Net // or nil
}

// Disks are files of file systems; the guest's writes to them are thrown away,
// but those to Kept, which it knows by that serial number.
type Disks struct {
	Root, Payload, Modules string
	More                   []string
	Kept                   string
}

// keptArgs: what has reached QEMU outlives it, as this machine's power is not
// cut. What the guest has in its memory alone is lost with its own.
func (d Disks) keptArgs() []string {
	if d.Kept == "" {
		return nil
	}
	return []string{
		"-drive", "if=none,id=kept,format=raw,cache=unsafe,discard=unmap,file=" + quoted(d.Kept),
		"-device", "virtio-blk-pci,drive=kept,serial=kept",
	}
}

// list has those that there are, in the order in which the guest has them.
func (d Disks) list() []string {
	var list []string
	for _, file := range append([]string{d.Root, d.Payload, d.Modules}, d.More...) {
		if file != "" {
			list = append(list, file)
		}
	}
	return list
}

// Device is where the guest has the i-th of More.
func (d Disks) Device(i int) string {
	n := len(d.list()) - len(d.More) + i
	return "/dev/vd" + string(rune('a'+n))
}

// processors: a machine that could never have more than one has no use for
// locked instructions, thinks QEMU, and translates them into plain ones. But
// the range is shared with other machines. So there is always room for a second
// one; but when instructions are counted, which needs them one after the other.
func (s Spec) processors() string {
	if s.Accel.ICount || s.CPUs > 1 {
		return fmt.Sprint(s.CPUs)
	}
	return fmt.Sprintf("%d,maxcpus=2", s.CPUs)
}

// ends say where QEMU finds what it is joined with, as words for QEMU.
type ends struct {
	console, monitor, channel string // options of a chardev
	memory                    string // path of the shared range
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
	args = append(args, s.Net.args(s.Name)...)
	for i, file := range s.Disks.list() {
		args = append(args,
			"-drive", fmt.Sprintf("if=none,id=disk%d,format=raw,snapshot=on,file=%s", i, quoted(file)),
			"-device", fmt.Sprintf("virtio-blk-pci,drive=disk%d", i))
	}
	return append(args, s.Disks.keptArgs()...)
}

// quoted is a path as a value among others: QEMU takes a comma for its end.
func quoted(path string) string { return strings.ReplaceAll(path, ",", ",,") }

// UUID is the identity of a run's machine: the same after a restart, another in
// every run. Guests know their slot in a volume's mount table by it.
func UUID(run, name string) string {
	h := sha256.Sum256([]byte(run + "/" + name))
	h[6], h[8] = h[6]&0x0f|0x40, h[8]&0x3f|0x80 // a random one (version 4)
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// commandLine is for the guest's kernel. Only warnings reach the console
// while it boots, the serial line being slow; the agent then opens it. An oops
// ends the guest at once. The machine may be busy: a lockup is given time, and
// whether timer interrupts and clocks agree is not checked.
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
