// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Step is an operation of a JSON patch (RFC 6902), as `kubectl patch --type=json` takes it.
type Step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// definition is the part of KubeVirt's VirtualMachine that affects exits.
type definition struct {
	Kind string `json:"kind"`
	Spec struct {
		Template struct {
			Spec struct {
				Domain *domain `json:"domain"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type domain struct {
	CPU *struct {
		Cores, Sockets, Threads uint32
		DedicatedCPUPlacement   bool `json:"dedicatedCpuPlacement"`
	} `json:"cpu"`
	IOThreadsPolicy *string `json:"ioThreadsPolicy"`
	Devices         struct {
		Disks []struct {
			Name string `json:"name"`
			Disk *struct {
				Bus string `json:"bus"`
			} `json:"disk"`
		} `json:"disks"`
		Interfaces []struct {
			Name  string `json:"name"`
			Model string `json:"model"`
		} `json:"interfaces"`
		BlockMultiQueue            *bool `json:"blockMultiQueue"`
		NetworkInterfaceMultiqueue *bool `json:"networkInterfaceMultiqueue"`
	} `json:"devices"`
}

func (d *domain) vcpus() uint32 {
	if d.CPU == nil {
		return 1
	}
	return max(1, d.CPU.Cores) * max(1, d.CPU.Sockets) * max(1, d.CPU.Threads)
}

const inDomain = "/spec/template/spec/domain"

// Patch reads a VirtualMachine, as `kubectl get vm NAME -o json` prints it, and returns the advice
// for it and the patch that makes the change. The patch tests each value that it replaces. So it
// fails if somebody has edited the VM since.
func Patch(object []byte, dedicated bool) ([]Advice, []Step, error) {
	var vm definition
	if err := json.Unmarshal(object, &vm); err != nil {
		return nil, nil, fmt.Errorf("not JSON of a VirtualMachine: %w", err)
	}
	if vm.Kind != "VirtualMachine" || vm.Spec.Template.Spec.Domain == nil {
		return nil, nil, errors.New("not a VirtualMachine with a domain: use the output of `kubectl get vm NAME -o json`")
	}
	d := vm.Spec.Template.Spec.Domain
	advice, steps := []Advice{}, []Step{}
	add := func(said Advice, some ...Step) {
		said.Where = InVM
		said.Undo = "run kubectl edit vm, and restart the VM"
		if said.Saving == "" {
			said.Saving = notMeasured
		}
		advice = append(advice, said)
		steps = append(steps, some...)
	}
	devices := inDomain + "/devices"
	virtioDisks, virtioCards := 0, 0
	for i, disk := range d.Devices.Disks {
		if disk.Disk == nil {
			continue
		}
		switch disk.Disk.Bus {
		case "virtio":
			virtioDisks++
		case "sata", "ide":
			virtioDisks++
			at := fmt.Sprintf("%s/disks/%d/disk/bus", devices, i)
			add(Advice{Rule: "emulated-disk", Title: "virtio for disk " + disk.Name,
				Reason:   "a controller that QEMU emulates register by register causes several exits for each request",
				Evidence: "bus: " + disk.Disk.Bus,
				Risk:     "the disk's name in the guest changes (sda to vda): /etc/fstab must use UUIDs"},
				Step{"test", at, disk.Disk.Bus}, Step{"replace", at, "virtio"})
		}
	}
	for i, card := range d.Devices.Interfaces {
		switch {
		case card.Model == "virtio" || card.Model == "":
			virtioCards++
		case slices.Contains([]string{"e1000", "e1000e", "rtl8139", "ne2k_pci", "pcnet"}, card.Model):
			virtioCards++
			at := fmt.Sprintf("%s/interfaces/%d/model", devices, i)
			add(Advice{Rule: "emulated-network", Title: "virtio for interface " + card.Name,
				Reason:   "an emulated card causes an exit for each access to a register",
				Evidence: "model: " + card.Model,
				Risk:     "the device's name in the guest may change, and with it the network's configuration"},
				Step{"test", at, card.Model}, Step{"replace", at, "virtio"})
		}
	}
	yes := func(set *bool) bool { return set != nil && *set }
	if n := d.vcpus(); n > 1 {
		if virtioCards > 0 && !yes(d.Devices.NetworkInterfaceMultiqueue) {
			add(Advice{Rule: "queues", Title: "a network queue for each vCPU",
				Reason:   "vCPUs that share a queue wait for its lock",
				Evidence: fmt.Sprintf("%d vCPUs, networkInterfaceMultiqueue is not set", n),
				Risk:     "one more vhost thread on the host for each queue"},
				Step{"add", devices + "/networkInterfaceMultiqueue", true})
		}
		if virtioDisks > 0 && !yes(d.Devices.BlockMultiQueue) {
			add(Advice{Rule: "queues", Title: "a disk queue for each vCPU",
				Reason:   "vCPUs that share a queue wait for its lock",
				Evidence: fmt.Sprintf("%d vCPUs, blockMultiQueue is not set", n),
				Risk:     "more interrupts of the guest"},
				Step{"add", devices + "/blockMultiQueue", true})
		}
	}
	if virtioDisks > 1 && d.IOThreadsPolicy == nil {
		add(Advice{Rule: "io-threads", Title: "separate threads for disks",
			Reason:   "without them QEMU's main thread serves all disks in addition to its other work",
			Evidence: fmt.Sprintf("%d virtio disks, ioThreadsPolicy is not set", virtioDisks),
			Risk:     "these threads need processor time: raise the VM's limit if it has one"},
			Step{"add", inDomain + "/ioThreadsPolicy", "auto"})
	}
	if dedicated && (d.CPU == nil || !d.CPU.DedicatedCPUPlacement) {
		said := Advice{Rule: "vcpus", Title: "a processor for each vCPU",
			Reason:   "a vCPU that waits for a processor may hold a lock that other vCPUs need; haltpoll and nohz_full also need dedicated processors",
			Evidence: "--dedicated was given, dedicatedCpuPlacement is not set",
			Risk:     "the node needs kubelet's CPU manager (policy static), and enough free processors"}
		if d.CPU == nil {
			add(said, Step{"add", inDomain + "/cpu", map[string]any{"dedicatedCpuPlacement": true}})
		} else {
			add(said, Step{"add", inDomain + "/cpu/dedicatedCpuPlacement", true})
		}
	}
	return advice, steps, nil
}

// Text returns a patch as one line.
func Text(steps []Step) string {
	data, err := json.Marshal(steps)
	if err != nil {
		return "[]" // cannot fail: a patch has only strings and booleans
	}
	return strings.TrimSpace(string(data))
}
