// SPDX-License-Identifier: Apache-2.0

package domainxml

import (
	"encoding/xml"
	"fmt"

	"libvirt.org/go/libvirtxml"
)

const commandline = "commandline"

// parts has the elements of a domain that this package reads. The only devices among them are
// memory devices.
var parts = []string{"uuid", "maxMemory", "memory", "vcpu", "sysinfo", "os", "cpu", "launchSecurity", commandline}

// read converts these elements to libvirtxml's types.
func read(root *node) (*libvirtxml.Domain, error) {
	if root.name != (xml.Name{Local: "domain"}) {
		return nil, fmt.Errorf("<%s> is no domain", plain(root.name))
	}
	some := &node{name: root.name, attrs: root.attrs}
	for _, name := range parts {
		for _, c := range root.children(name) {
			some.content = append(some.content, c)
		}
	}
	devices := &node{name: xml.Name{Local: "devices"}}
	for _, d := range root.children("devices") {
		for _, c := range d.children("memory") {
			devices.content = append(devices.content, c)
		}
	}
	some.content = append(some.content, devices)
	d := &libvirtxml.Domain{}
	if err := d.Unmarshal(some.String()); err != nil {
		return nil, err
	}
	if d.Devices == nil {
		d.Devices = &libvirtxml.DomainDeviceList{}
	}
	return d, nil
}

// store writes the elements that change may have changed back to the tree.
func store(root *node, d *libvirtxml.Domain) error {
	text, err := d.Marshal()
	if err != nil {
		return err
	}
	changed, err := parseTree([]byte(text))
	if err != nil {
		return err
	}
	root.replace("maxMemory", changed.children("maxMemory"))
	root.must("cpu").replace("numa", changed.must("cpu").children("numa"))
	root.must("devices").replace("memory", changed.must("devices").children("memory"))
	root.replace(commandline, changed.children(commandline))
	return nil
}
