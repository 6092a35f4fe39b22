// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"stargate/tune/internal/system"
)

// The files that settings go to. Each has one owner: this program.
const (
	sysctlFile = "/etc/sysctl.d/90-stargate-tune.conf"
	udevFile   = "/etc/udev/rules.d/90-stargate-tune.rules"
	grubFile   = "/etc/default/grub.d/90-stargate-tune.cfg"
	grubConfig = "/boot/grub/grub.cfg"
	profile    = "stargate-tune"
	header     = "# Made by stargate-tune apply; stargate-tune undo removes it.\n"
)

// known are the distributions on which this has been tried.
var known = []string{"debian 12", "debian 13"}

// Target is a system that settings can be made on.
type Target struct {
	sys   system.System
	tuned bool
	grub  bool
	udev  bool
}

// Look returns the system as a target, or says why it is none.
func Look(sys system.System) (*Target, error) {
	id, version := sys.Distribution()
	if is := id + " " + version; !slices.Contains(known, is) {
		return nil, fmt.Errorf("unknown system %q: nothing was changed; apply works on %s; "+
			"make the settings of `stargate-tune advise` with your own tools", strings.TrimSpace(is),
			strings.Join(known, " and "))
	}
	signature, _, _ := sys.Hypervisor()
	if signature != "KVMKVMKVM" {
		return nil, fmt.Errorf("this is no guest of KVM: nothing was changed; run apply in the guest")
	}
	return &Target{
		sys:   sys,
		tuned: sys.Exists("/usr/sbin/tuned"),
		grub:  sys.Exists("/usr/sbin/update-grub") && sys.Exists(grubConfig) && sys.Exists("/etc/default/grub"),
		udev:  sys.Exists("/usr/bin/udevadm") || sys.Exists("/bin/udevadm"),
	}, nil
}

// Supports says whether this system can keep a setting over a boot, and why not.
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
		return fmt.Errorf("%s: this system has neither udev nor tuned: set it at each boot", s)
	}
	return nil
}

// file is a file that apply makes or replaces.
type file struct {
	Path string  `json:"path"`
	New  string  `json:"new"`
	Old  *former `json:"old"` // nil: there was none
}

// former is a file as it was.
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

// attribute is the name of an attribute relative to its device, as udev wants it.
func attribute(s Setting) string {
	dir, base := path.Split(s.Name)
	if path.Base(dir) == "queue" {
		return "queue/" + base
	}
	return base
}

// profile is a profile of tuned, which includes the one that was active. tuned then makes the
// settings at each boot.
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
