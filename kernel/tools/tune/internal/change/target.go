// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"stargate/tune/internal/system"
)

// The files that store settings. Only this program writes them, except grub.cfg.
const (
	sysctlFile = "/etc/sysctl.d/90-stargate-tune.conf"
	udevFile   = "/etc/udev/rules.d/90-stargate-tune.rules"
	grubFile   = "/etc/default/grub.d/90-stargate-tune.cfg"
	grubConfig = "/boot/grub/grub.cfg"
	profile    = "stargate-tune"
	header     = "# Made by stargate-tune apply; stargate-tune undo removes it.\n"
)

// known lists the distributions on which the tests have run apply.
var known = []string{"debian 12", "debian 13"}

// Target is a system on which apply can make settings.
type Target struct {
	sys   system.System
	tuned bool
	grub  bool
	udev  bool
}

// Look returns the system as a target, or an error with the reason why it cannot be one.
func Look(sys system.System) (*Target, error) {
	id, version := sys.Distribution()
	if is := id + " " + version; !slices.Contains(known, is) {
		return nil, fmt.Errorf("unknown system %q: nothing was changed; apply works on %s; "+
			"make the settings of `stargate-tune advise` with your own tools", strings.TrimSpace(is),
			strings.Join(known, " and "))
	}
	signature, _, _ := sys.Hypervisor()
	if signature != "KVMKVMKVM" {
		return nil, fmt.Errorf("this machine is not a guest of KVM: nothing was changed; run apply in the guest")
	}
	return &Target{
		sys:   sys,
		tuned: sys.Exists("/usr/sbin/tuned"),
		grub:  sys.Exists("/usr/sbin/update-grub") && sys.Exists(grubConfig) && sys.Exists("/etc/default/grub"),
		udev:  sys.Exists("/usr/bin/udevadm") || sys.Exists("/bin/udevadm"),
	}, nil
}

// Supports returns an error if this system cannot make a setting at each boot.
func (t *Target) Supports(s Setting) error {
	if err := s.check(); err != nil {
		return err
	}
	if s.Kind == Argument {
		if !t.grub {
			return fmt.Errorf("%s: this system has no /usr/sbin/update-grub with %s: add the argument to its boot loader", s, grubConfig)
		}
		return nil
	}
	if _, there := s.now(t.sys); !there {
		return fmt.Errorf("%s: this kernel has no %s", s, s.path())
	}
	if s.Kind == Attribute && !t.udev && !t.tuned {
		return fmt.Errorf("%s: this system has neither udev nor tuned: write the value at each boot", s)
	}
	return nil
}

// file is a file that apply makes or replaces.
type file struct {
	Path string  `json:"path"`
	New  string  `json:"new"`
	Old  *former `json:"old"` // nil: there was none
}

// former is the former content of a file.
type former struct {
	Content []byte `json:"content"`
	Mode    uint32 `json:"mode"`
	UID     int    `json:"uid"`
	GID     int    `json:"gid"`
	Time    int64  `json:"mtime_ns"`
}

// files returns the content of each file for these settings.
func (t *Target) files(settings []Setting) []file {
	of := func(kind Kind) (found []Setting) {
		for _, one := range settings {
			if one.Kind == kind {
				found = append(found, one)
			}
		}
		return found
	}
	var files []file
	add := func(path, text string) { files = append(files, file{Path: path, New: text}) }
	if arguments := of(Argument); len(arguments) > 0 {
		var words []string
		for _, one := range arguments {
			words = append(words, one.Name)
		}
		add(grubFile, header+`GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT `+strings.Join(words, " ")+"\"\n")
	}
	sysctls, attributes := of(Sysctl), of(Attribute)
	if len(sysctls)+len(attributes) == 0 {
		return files
	}
	if t.tuned {
		for _, one := range t.profile(sysctls, attributes) {
			add(one.Path, one.New)
		}
		return files
	}
	if len(sysctls) > 0 {
		text := header
		for _, one := range sysctls {
			text += one.Name + " = " + one.Value + "\n"
		}
		add(sysctlFile, text)
	}
	if len(attributes) > 0 {
		text := header
		for _, one := range attributes {
			line := one.Match + `, ATTR{` + attribute(one) + `}="` + one.Value + "\"\n"
			if !strings.Contains(text, line) {
				text += line
			}
		}
		add(udevFile, text)
	}
	return files
}

// attribute returns the name of an attribute relative to its device, in the form for udev.
func attribute(s Setting) string {
	dir, base := path.Split(s.Name)
	if path.Base(dir) == "queue" {
		return "queue/" + base
	}
	return base
}

// profile returns the files of a profile of tuned that includes the active one. tuned then makes
// the settings at each boot.
func (t *Target) profile(sysctls, attributes []Setting) []file {
	active := t.sys.Text("/etc/tuned/active_profile")
	if active == "" || active == profile {
		active = "virtual-guest"
	}
	text := header + "[main]\nsummary=settings of stargate-tune\ninclude=" + strings.Join(strings.Fields(active), ",") + "\n"
	for _, part := range []struct {
		name     string
		settings []Setting
	}{{"sysctl", sysctls}, {"sysfs", attributes}} {
		if len(part.settings) > 0 {
			text += "\n[" + part.name + "]\n"
		}
		for _, one := range part.settings {
			text += one.Name + "=" + one.Value + "\n"
		}
	}
	at := "/etc/tuned/" + profile
	if t.sys.Exists("/usr/lib/tuned/profiles") { // since tuned 2.24
		at = "/etc/tuned/profiles/" + profile
	}
	return []file{{Path: at + "/tuned.conf", New: text},
		{Path: "/etc/tuned/active_profile", New: profile + "\n"},
		{Path: "/etc/tuned/profile_mode", New: "manual\n"}}
}
