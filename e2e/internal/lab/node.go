// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"stargate/e2e/internal/agent"
	"stargate/e2e/internal/cache"
	"stargate/e2e/internal/image"
	"stargate/e2e/internal/kernel"
	"stargate/e2e/internal/say"
	"stargate/e2e/internal/vm"
)

// Host is the name of the node: the VM with KVM in which the guests run.
const Host = "host"

// regionPath is the path of the volume's memory in the node, for its guests.
const regionPath = MountPoint + "/.stargate/region"

// Paths in the node of the files from which its guests are made.
const (
	nodeQEMU  = "/rig/qemu"
	nodeBoots = "/rig/boot" // has a folder for each kernel, with these files
	bootImage = "vmlinuz"
	bootInit  = "initramfs"
)

// nodeAssets are the files of a node, in addition to those of its guests.
type nodeAssets struct {
	system system
	qemu   string   // the disk with QEMU's root
	boots  []string // for each of the systems, a disk with its kernel and initramfs
}

// PrepareNode fills the caches for a node with that kernel. Prepare and PrepareDisks must have run
// before.
func (a *Assets) PrepareNode(k kernel.Kernel) error {
	initramfs, err := makeInitramfs(a.Cache, k)
	if err != nil {
		return err
	}
	n := nodeAssets{system: system{Kernel: k, initramfs: initramfs}}
	if n.system.modules, err = makeModules(a.Cache, k); err != nil {
		return err
	}
	if n.qemu, err = makeQEMUDisk(a.Cache, a.QEMU); err != nil {
		return err
	}
	for _, s := range a.systems {
		boot, err := makeBoot(a.Cache, s)
		if err != nil {
			return err
		}
		n.boots = append(n.boots, boot)
	}
	a.node = n
	a.Accel = a.Accel.ForNode()
	return nil
}

func makeQEMUDisk(c cache.Dir, q vm.QEMU) (string, error) {
	dir, err := c.Entry("qemu-disk", []string{q.Root()}, func(tmp string) error {
		defer say.Step("making the disk with QEMU for nodes")()
		return image.Ext4(q.Root(), filepath.Join(tmp, "disk"), 0)
	})
	return filepath.Join(dir, "disk"), err
}

func makeBoot(c cache.Dir, s system) (string, error) {
	inputs := []string{s.Image, stamp(s.Image), s.initramfs, stamp(s.initramfs)}
	dir, err := c.Entry("boot", inputs, func(tmp string) error {
		tree := filepath.Join(tmp, "tree")
		if err := copyFiles(tree, map[string]string{bootImage: s.Image, bootInit: s.initramfs}); err != nil {
			return err
		}
		return image.Ext4(tree, filepath.Join(tmp, "disk"), 0)
	})
	return filepath.Join(dir, "disk"), err
}

// copyFiles makes a folder with copies of files. The keys are the names of the copies.
func copyFiles(dir string, files map[string]string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for name, from := range files {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// nodeMemory is the memory for the node's own kernel and programs. machineMemory is the memory for
// each QEMU in the node, in addition to the memory of its VM.
const (
	nodeMemory    = 768
	machineMemory = 128
)

// hostSpec describes the node's VM. It has one CPU, because with more CPUs TCG corrupts the node's
// memory. The node gets the range as memory with struct pages (D1). The node also has the disks of
// its guests: a second copy of its own root, and for each kernel the boot files and the modules.
func (l *Lab) hostSpec() vm.Spec {
	s := vm.Spec{
		Name:      Host,
		Accel:     l.Accel,
		Kernel:    l.node.system.Image,
		Initramfs: l.node.system.initramfs,
		Append:    l.Append,
		Disks: vm.Disks{Root: l.root, Payload: l.Payload, Modules: l.node.system.modules,
			More: []string{l.node.qemu, l.root}},
		CPUs:      1,
		MemoryMiB: nodeMemory + l.Options.Guests*(l.MemoryMiB+machineMemory),
		Range:     l.Range.WithPages(),
	}
	for i, boot := range l.node.boots {
		s.Disks.More = append(s.Disks.More, boot)
		if l.systems[i].modules != "" {
			s.Disks.More = append(s.Disks.More, l.systems[i].modules)
		}
	}
	return s
}

// nodeDevices are the node's devices with QEMU, the guests' root, and for each kernel the boot
// files and the modules.
type nodeDevices struct {
	qemu, root     string
	boots, modules []string
}

func (l *Lab) nodeDevices() nodeDevices {
	disks := l.hostSpec().Disks
	d := nodeDevices{qemu: disks.Device(0), root: disks.Device(1)}
	next := 2
	for i := range l.node.boots {
		d.boots = append(d.boots, disks.Device(next))
		next++
		modules := ""
		if l.systems[i].modules != "" {
			modules = disks.Device(next)
			next++
		}
		d.modules = append(d.modules, modules)
	}
	return d
}

func (l *Lab) inNode(m *member) bool { return l.host != nil && m != l.host }

// notTheNode returns an error if name is the node. It is for operations that are only for guests.
func (l *Lab) notTheNode(name, instead string) error {
	if l.host != nil && name == Host {
		return fmt.Errorf("%s is the node, in which the guests run: %s", name, instead)
	}
	return nil
}

// planInNode describes a VM in the node. The VM's disks are devices of the node, and its range is
// the volume's own memory.
func (l *Lab) planInNode(m *member) (vm.Place, vm.Spec, error) {
	host := l.current(l.host)
	if host == nil || !host.Alive() {
		return nil, vm.Spec{}, fmt.Errorf("%s runs in %s, which is not running: start_node", m.name, Host)
	}
	devices, i := l.nodeDevices(), m.kernel
	boot := fmt.Sprintf("%s/%d/", nodeBoots, i)
	spec := vm.Spec{
		Name:      m.name,
		Accel:     vm.Accel{Name: "kvm"},
		Kernel:    boot + bootImage,
		Initramfs: boot + bootInit,
		Append:    l.Append,
		Disks:     vm.Disks{Root: devices.root, Payload: agent.PayloadDisk, Modules: devices.modules[i]},
		CPUs:      l.CPUs,
		MemoryMiB: l.MemoryMiB,
		Range:     l.Range,
		Words:     m.life.Words,
		Bells:     l.Bells,
	}
	return vm.Node{Link: host.Link, QEMU: vm.At(nodeQEMU), Memory: regionPath}, spec, nil
}

// StartNode boots the node, mounts the volume there and prepares it for guests. If a power cut has
// lost the volume, it makes a new one.
func (l *Lab) StartNode() error {
	if l.host == nil {
		return errNoNode
	}
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	if l.host.guest != nil && l.host.guest.Alive() {
		return fmt.Errorf("%s is running already", Host)
	}
	if l.lost {
		if err := l.Format(); err != nil {
			return err
		}
		l.lost = false
	}
	if err := l.boot(l.host); err != nil {
		return err
	}
	if err := l.mount(l.host); err != nil {
		return err
	}
	start := time.Now()
	args := []string{vm.NodeRun, nodeQEMU, l.nodeDevices().qemu, nodeBoots}
	if err := l.inGuest(l.host, readyScript, append(args, l.nodeDevices().boots...)...); err != nil {
		return fmt.Errorf("%s: guests cannot run in it: %w", Host, err)
	}
	if l.Bells != "" {
		if err := l.inGuest(l.host, bellsScript, l.Bells, fmt.Sprint(vm.BellPeers), MountPoint); err != nil {
			return fmt.Errorf("%s: the exchange of doorbells: %w", Host, err)
		}
	}
	say.Line("%s is ready for guests after %.1f s", Host, time.Since(start).Seconds())
	return nil
}

var errNoNode = errors.New("there is no node: e2e/rig run --node")

// readyScript loads KVM, and mounts the disks for guests. KVM does not load on an unsuitable
// processor.
const readyScript = `set -e
said=$(modprobe kvm_amd 2>&1) || said+=$'\n'$(modprobe kvm_intel 2>&1) || {
	echo "no nested virtualization: KVM does not load on $(sed -n 's/^model name.*: //p;T;q' /proc/cpuinfo): $said"
	dmesg | grep -i kvm | tail -n 5
	exit 1
}
[ -c /dev/kvm ] || { echo "KVM is loaded, but there is no /dev/kvm"; exit 1; }
run=$1 qemu=$2 device=$3 boots=$4
shift 4
mkdir -p "$run" "$qemu"
mount -t ext4 -o ro "$device" "$qemu"
i=0
for device; do
	mkdir -p "$boots/$i"
	mount -t ext4 -o ro "$device" "$boots/$i"
	i=$((i + 1))
done`

// bellsScript starts the exchange of doorbells, which connects the node's kernel with the guests.
const bellsScript = `set -e
setsid stargatectl bells --peers "$2" "$1" "$3" >"$1.log" 2>&1 </dev/null &
echo $! >"$1.pid"
for try in $(seq 600); do
	[ ! -S "$1" ] || exit 0
	kill -0 "$(cat "$1.pid")" 2>/dev/null || break
	sleep 0.05
done
cat "$1.log"
exit 1`

// endBells ends the exchange, which keeps the node's module.
const endBells = `[ ! -e "$1.pid" ] || { kill "$(cat "$1.pid")"; while [ -e "$1" ]; do sleep 0.02; done; }`

// KillNode cuts the power of the node, which also ends everything inside. It returns when guards
// have reported the end of each system. With --zone dram the range's content is then lost.
func (l *Lab) KillNode() error {
	if l.host == nil {
		return errNoNode
	}
	return l.withRunning(Host, func(host *member) error {
		running := []*member{host}
		for _, name := range l.names {
			m := l.members[name]
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.guest != nil && m.guest.Alive() {
				running = append(running, m)
			}
		}
		host.guest.Kill()
		for _, m := range running {
			m.expected = true
			<-m.guest.Ended()
			if err := l.guardsDone(m); err != nil {
				return err
			}
		}
		if l.Forgets {
			return l.lose()
		}
		return nil
	})
}

// rebootLimit is the time limit in which a node's kernel must shut down its devices and VMs.
const rebootLimit = time.Minute

// AwaitReboot waits until the node has ended with all its guests, because a program in the node has
// requested a reboot, as the script expects. StartNode can then boot the node.
func (l *Lab) AwaitReboot() error {
	if l.host == nil {
		return errNoNode
	}
	host := l.host
	host.mu.Lock()
	defer host.mu.Unlock()
	if host.guest == nil {
		return fmt.Errorf("%s has never run", Host)
	}
	select {
	case <-host.guest.Ended():
	case <-time.After(rebootLimit):
		return fmt.Errorf("%s has not ended within %s", Host, rebootLimit)
	}
	gone := []*member{host}
	for _, name := range l.names {
		m := l.members[name]
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.guest != nil && !m.expected {
			gone = append(gone, m)
		}
	}
	for _, m := range gone {
		<-m.guest.Ended()
		m.expected = true
		if err := l.guardsDone(m); err != nil {
			return err
		}
	}
	return nil
}

// lose clears the range, as a power cut clears DRAM.
func (l *Lab) lose() error {
	l.lost = true
	return l.Range.Wipe()
}
