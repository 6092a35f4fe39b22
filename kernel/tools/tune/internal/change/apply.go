// SPDX-License-Identifier: Apache-2.0

package change

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"stargate/tune/internal/system"
)

// Changer makes and undoes settings.
type Changer struct {
	Sys system.System
	// Run executes a program of the system, such as update-grub.
	Run func(program string, arguments ...string) error
	// Warn receives a line for each problem that is not a failure.
	Warn func(line string)
	// step is called before each action whose effect remains after a crash; tests end the
	// program there.
	step func(name string)
}

func (c *Changer) at(name string) {
	if c.step != nil {
		c.step(name)
	}
}

func (c *Changer) warn(format string, arguments ...any) {
	if c.Warn != nil {
		c.Warn(fmt.Sprintf(format, arguments...))
	}
}

// lock ensures that only one change runs at a time. It locks a folder of the system, and so leaves
// no file.
func (c *Changer) lock() (func(), error) {
	dir, err := os.Open(c.Sys.Path(path.Dir(Folder)))
	if err != nil {
		return nil, fmt.Errorf("this system has no %s: %w", path.Dir(Folder), err)
	}
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = dir.Close()
		return nil, errors.New("another stargate-tune is changing this system: try again when it has ended")
	}
	return func() { _ = dir.Close() }, nil
}

// Apply makes all settings or none. It returns the settings that it has made, which are none if all
// were already made.
func (c *Changer) Apply(settings []Setting) ([]Setting, error) {
	target, err := Look(c.Sys)
	if err != nil {
		return nil, err
	}
	unlock, err := c.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := c.settle(false); err != nil {
		return nil, err
	}
	r, err := c.plan(target, settings)
	if r == nil || err != nil {
		return nil, err
	}
	if err := c.make(r); err != nil {
		if back := c.back(r); back != nil {
			return nil, fmt.Errorf("%w; the settings before could not be restored: %w; run `stargate-tune undo`", err, back)
		}
		return nil, fmt.Errorf("%w; nothing was changed", err)
	}
	if err := c.finish(r, false); err != nil {
		return nil, err
	}
	var made []Setting
	for _, one := range r.Values {
		made = append(made, one.Setting)
	}
	return made, nil
}

// plan returns the record of a change, with all former values. It changes nothing.
func (c *Changer) plan(target *Target, settings []Setting) (*Record, error) {
	applied, err := load(c.Sys)
	if err != nil {
		return nil, err
	}
	r := &Record{Version: recordVersion, Phase: Prepare}
	seen := map[string]bool{}
	var wanted []Setting
	for _, one := range settings {
		if err := target.Supports(one); err != nil {
			return nil, fmt.Errorf("%w; nothing was changed", err)
		}
		if key := string(one.Kind) + one.Name; seen[key] {
			continue
		} else {
			seen[key] = true
		}
		if applied != nil && applied.has(one) {
			continue
		}
		wanted = append(wanted, one)
		now := value{Setting: one}
		if one.Kind != Argument {
			now.Old, _ = one.now(c.Sys)
		}
		r.Values = append(r.Values, now)
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	if applied != nil {
		return nil, errors.New("other settings are applied: run `stargate-tune undo` first, and apply again; nothing was changed")
	}
	for _, one := range target.files(wanted) {
		if one.Old, err = before(c.Sys, one.Path); err != nil {
			return nil, err
		}
		if one.Old != nil && strings.Contains(path.Base(one.Path), profile) {
			return nil, fmt.Errorf("%s exists without a record of it: remove it, and apply again; nothing was changed", one.Path)
		}
		r.Files = append(r.Files, one)
		for _, folder := range c.absent(path.Dir(one.Path)) {
			if !slices.Contains(r.Folders, folder) {
				r.Folders = append(r.Folders, folder)
			}
		}
	}
	return r, nil
}

// absent returns the folders of a path that do not exist, the outermost first.
func (c *Changer) absent(folder string) []string {
	var found []string
	for ; folder != "/" && !c.Sys.Exists(folder); folder = path.Dir(folder) {
		found = append([]string{folder}, found...)
	}
	return found
}

// Preview returns the settings and the files that Apply would make.
func (c *Changer) Preview(settings []Setting) ([]Setting, []string, error) {
	target, err := Look(c.Sys)
	if err != nil {
		return nil, nil, err
	}
	r, err := c.plan(target, settings)
	if r == nil || err != nil {
		return nil, nil, err
	}
	var made []Setting
	var paths []string
	for _, one := range r.Values {
		made = append(made, one.Setting)
	}
	for _, one := range r.Files {
		paths = append(paths, one.Path)
	}
	return made, paths, nil
}

func (r *Record) has(s Setting) bool {
	return slices.ContainsFunc(r.Values, func(v value) bool {
		return v.Kind == s.Kind && v.Name == s.Name && v.Value == s.Value
	})
}

func (r *Record) arguments() (words []string) {
	for _, one := range r.Values {
		if one.Kind == Argument {
			words = append(words, one.Name)
		}
	}
	return words
}

// make performs all steps that can fail, until the settings are valid. With kernel arguments, the
// settings become valid with the new grub.cfg, because the boot loader reads only this file.
func (c *Changer) make(r *Record) error {
	c.at("record")
	if err := r.save(c.Sys); err != nil {
		return err
	}
	for _, one := range r.Values {
		if one.Kind == Argument || same(one.Old, one.Value) {
			continue
		}
		c.at("set " + one.Name)
		if err := c.set(one.Setting, one.Value); err != nil {
			return err
		}
	}
	for _, folder := range r.Folders {
		c.at("folder " + folder)
		if err := os.Mkdir(c.Sys.Path(folder), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := syncFolder(c.Sys, path.Dir(folder)); err != nil {
			return err
		}
	}
	for _, one := range r.Files {
		c.at("stage " + one.Path)
		if err := stage(c.Sys, one.Path, []byte(one.New), one.Old); err != nil {
			return err
		}
	}
	if len(r.arguments()) > 0 {
		c.at("place " + grubFile)
		if err := place(c.Sys, grubFile); err != nil {
			return err
		}
		if err := c.updateGrub(); err != nil {
			return err
		}
	}
	c.at("commit")
	r.Phase = Commit
	if err := r.save(c.Sys); err != nil {
		r.Phase = Prepare
		return err
	}
	return nil
}

// set writes a value and reads it again, because some files of the kernel accept a value but store
// another.
func (c *Changer) set(s Setting, to string) error {
	if err := c.Sys.Set(s.path(), to); err != nil {
		return fmt.Errorf("%s cannot be set to %q: %w", s.Name, to, err)
	}
	if now, _ := s.now(c.Sys); !same(now, to) {
		return fmt.Errorf("%s cannot be set to %q: the kernel keeps %q", s.Name, to, now)
	}
	return nil
}

// updateGrub makes a new grub.cfg, and waits until it is on the disk.
func (c *Changer) updateGrub() error {
	c.at("update-grub")
	if err := c.Run("/usr/sbin/update-grub"); err != nil {
		return fmt.Errorf("update-grub: %w", err)
	}
	config, err := os.Open(c.Sys.Path(grubConfig))
	if err != nil {
		return err
	}
	if err := errors.Join(config.Sync(), config.Close()); err != nil {
		return err
	}
	return syncFolder(c.Sys, path.Dir(grubConfig))
}

// finish puts all files of valid settings in place. It can run again after a crash at any point.
// again: this is such a run, and the boot may have lost the values.
func (c *Changer) finish(r *Record, again bool) error {
	for _, one := range r.Files {
		now, err := c.Sys.Read(one.Path)
		if err == nil && now == one.New {
			_ = os.Remove(c.Sys.Path(temporary(one.Path)))
			continue
		}
		for _, folder := range c.absent(path.Dir(one.Path)) {
			if err := os.Mkdir(c.Sys.Path(folder), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		c.at("place " + one.Path)
		if err := replace(c.Sys, one.Path, []byte(one.New), one.Old); err != nil {
			return fmt.Errorf("%w; run `stargate-tune undo`, or `stargate-tune settle` to complete the change", err)
		}
	}
	if again && len(r.arguments()) > 0 {
		if err := c.updateGrub(); err != nil {
			return err
		}
	}
	for _, one := range r.Values {
		if !again || one.Kind == Argument {
			continue
		}
		if err := c.set(one.Setting, one.Value); err != nil {
			c.warn("%v", err)
		}
	}
	c.reload(r)
	c.at("applied")
	r.Phase = Applied
	return r.save(c.Sys)
}

// back undoes a change that is not yet valid.
func (c *Changer) back(r *Record) error {
	if err := c.restore(r); err != nil {
		return err
	}
	for _, one := range r.Files {
		if err := remove(c.Sys, temporary(one.Path)); err != nil {
			return err
		}
	}
	if len(r.arguments()) > 0 && c.Sys.Exists(grubFile) {
		c.at("remove " + grubFile)
		if err := remove(c.Sys, grubFile); err != nil {
			return err
		}
	}
	if len(r.arguments()) > 0 {
		if err := c.updateGrub(); err != nil {
			return err
		}
	}
	c.removeFolders(r)
	c.at("erase")
	return erase(c.Sys)
}

// restore writes the former value of each setting, in reverse order. If another program has changed
// a value since, restore keeps that value.
func (c *Changer) restore(r *Record) error {
	for _, one := range slices.Backward(r.Values) {
		if one.Kind == Argument {
			continue
		}
		now, there := one.now(c.Sys)
		if !there || same(now, one.Old) {
			continue
		}
		if !same(now, one.Value) {
			c.warn("%s is still %q: another program has changed it since", one.Name, now)
			continue
		}
		c.at("restore " + one.Name)
		if err := c.set(one.Setting, one.Old); err != nil {
			c.warn("%v", err) // the device may be missing or in use; the next boot restores the former value
		}
	}
	return nil
}

func (c *Changer) removeFolders(r *Record) {
	for _, folder := range slices.Backward(r.Folders) {
		_ = os.Remove(c.Sys.Path(folder)) // keeps the folder if it has other files
	}
}

// reload makes running services read their changed files. The next boot reads them in any case.
func (c *Changer) reload(r *Record) {
	for _, one := range r.Files {
		switch {
		case one.Path == udevFile && c.Sys.Exists("/run/udev/control"):
			if err := c.Run("udevadm", "control", "--reload"); err != nil {
				c.warn("udev reads its new rules at the next boot only: %v", err)
			}
		case strings.HasPrefix(one.Path, "/etc/tuned/active_profile") && c.Sys.Exists("/run/systemd/system"):
			if err := c.Run("systemctl", "try-restart", "tuned"); err != nil {
				c.warn("tuned reads its new profile at the next boot only: %v", err)
			}
		}
	}
}

// Undo undoes an applied change. It returns the restored settings, or nothing if nothing was
// applied.
func (c *Changer) Undo(force bool) (*Record, error) {
	unlock, err := c.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := c.settle(false); err != nil {
		return nil, err
	}
	r, err := load(c.Sys)
	if r == nil || err != nil {
		return nil, err
	}
	if changed := c.changed(r); len(changed) > 0 && !force {
		return nil, fmt.Errorf("changed since apply: %s: nothing was undone; --force removes them with their new content", strings.Join(changed, ", "))
	}
	c.at("undo")
	r.Phase = Undo
	if len(r.arguments()) > 0 {
		r.Phase = Withdraw
	}
	if err := r.save(c.Sys); err != nil {
		return nil, err
	}
	return r, c.undo(r)
}

// changed returns the files that somebody has changed since apply.
func (c *Changer) changed(r *Record) (paths []string) {
	for _, one := range r.Files {
		if now, err := c.Sys.Read(one.Path); err != nil || now != one.New {
			paths = append(paths, one.Path)
		}
	}
	return paths
}

// undo continues from the phase of the record. It can run again after a crash at any point.
func (c *Changer) undo(r *Record) error {
	if r.Phase == Withdraw {
		c.at("remove " + grubFile)
		if err := remove(c.Sys, grubFile); err != nil {
			return err
		}
		if err := c.updateGrub(); err != nil {
			return fmt.Errorf("%w; run `stargate-tune undo` again", err)
		}
		c.at("undone")
		r.Phase = Undo
		if err := r.save(c.Sys); err != nil {
			return err
		}
	}
	for _, one := range r.Files {
		if err := remove(c.Sys, temporary(one.Path)); err != nil {
			return err
		}
		c.at("revert " + one.Path)
		if one.Old == nil {
			if err := remove(c.Sys, one.Path); err != nil {
				return err
			}
			continue
		}
		if now, err := c.Sys.Read(one.Path); err != nil || !bytes.Equal([]byte(now), one.Old.Content) {
			if err := replace(c.Sys, one.Path, one.Old.Content, one.Old); err != nil {
				return err
			}
		}
		then := time.Unix(0, one.Old.Time)
		if err := os.Chtimes(c.Sys.Path(one.Path), then, then); err != nil {
			return err
		}
	}
	c.reload(r)
	if err := c.restore(r); err != nil {
		return err
	}
	c.removeFolders(r)
	c.at("erase")
	return erase(c.Sys)
}

// Settle completes or undoes a change that a crash has interrupted. boot: the machine has just
// started, so the kernel's arguments show whether the change was valid at the boot.
func (c *Changer) Settle(boot bool) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return c.settle(boot)
}

func (c *Changer) settle(boot bool) error {
	r, err := load(c.Sys)
	if err != nil {
		return err
	}
	if r == nil {
		// A crash before the first record was complete leaves only its folder, if anything.
		if c.Sys.Exists(Folder) {
			return erase(c.Sys)
		}
		return nil
	}
	booted := boot && c.booted(r)
	switch r.Phase {
	case Prepare:
		if !booted {
			return c.back(r)
		}
		return c.finish(r, true)
	case Commit:
		return c.finish(r, true)
	case Withdraw:
		if booted {
			return c.finish(r, true)
		}
		return c.undo(r)
	case Undo:
		return c.undo(r)
	case Applied:
		_ = os.Remove(c.Sys.Path(temporary(recordFile)))
		return nil
	}
	return fmt.Errorf("%s has the unknown phase %q", recordFile, r.Phase)
}

// booted reports whether the running kernel was started with the arguments of the record. Without
// arguments, only the record decides.
func (c *Changer) booted(r *Record) bool {
	words := r.arguments()
	given := strings.Fields(c.Sys.Text("/proc/cmdline"))
	for _, word := range words {
		if !slices.Contains(given, word) {
			return false
		}
	}
	return len(words) > 0
}
