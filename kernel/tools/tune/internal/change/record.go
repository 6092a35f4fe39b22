// SPDX-License-Identifier: Apache-2.0

package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"stargate/tune/internal/system"
)

// Folder contains only the record. It exists while there is a change to undo or to settle.
const Folder = "/var/lib/stargate-tune"

const recordFile = Folder + "/record.json"

// Phase is the progress of a change. The record changes from one phase to the next atomically.
type Phase string

const (
	// Prepare: apply has begun. Only the kernel's arguments would remain after a boot.
	Prepare Phase = "prepare"
	// Commit: the settings are valid, and apply puts files in place.
	Commit Phase = "commit"
	// Applied: all files are in place.
	Applied Phase = "applied"
	// Withdraw: undo has begun to remove the kernel's arguments. All files are still in place.
	Withdraw Phase = "withdraw"
	// Undo: the settings are no longer valid, and undo removes files.
	Undo Phase = "undo"
)

// value is a setting and the former value; Old is empty for a kernel argument.
type value struct {
	Setting
	Old string `json:"old,omitempty"`
}

// Record has all data that undo needs.
type Record struct {
	Version int      `json:"version"`
	Phase   Phase    `json:"phase"`
	Values  []value  `json:"values"`
	Files   []file   `json:"files"`
	Folders []string `json:"folders"` // folders that apply has made, the outermost first
}

const recordVersion = 1

// load returns nil if there is no record.
func load(sys system.System) (*Record, error) {
	text, err := sys.Read(recordFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the record of earlier changes: %w", err)
	}
	r := &Record{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): nothing was changed; restore it, or remove it and the files 90-stargate-tune.*", recordFile, err)
	}
	if r.Version != recordVersion {
		return nil, fmt.Errorf("%s has version %d, and this program knows %d: use the version that made it", recordFile, r.Version, recordVersion)
	}
	return r, nil
}

// save replaces the record, durably.
func (r *Record) save(sys system.System) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.Mkdir(sys.Path(Folder), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing the record: %w", err)
	}
	if err := syncFolder(sys, filepath.Dir(Folder)); err != nil {
		return err
	}
	if err := replace(sys, recordFile, append(data, '\n'), nil); err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	return nil
}

// erase removes the record and its folder.
func erase(sys system.System) error {
	for _, path := range []string{temporary(recordFile), recordFile, Folder} {
		if err := os.Remove(sys.Path(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the record: %w", err)
		}
	}
	return syncFolder(sys, filepath.Dir(Folder))
}

// temporary returns the name of a file before it gets its final name. Programs that read these
// folders ignore files with this ending.
func temporary(path string) string { return path + ".stargate-tune-new" }

// stage writes a file under its temporary name, durably.
func stage(sys system.System, path string, data []byte, old *former) error {
	name := sys.Path(temporary(path))
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	if err == nil && old != nil {
		if err = out.Chmod(fs.FileMode(old.Mode)); err == nil {
			err = keepOwner(out, old)
		}
	} else if err == nil {
		err = out.Chmod(0o644)
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

// keepOwner needs root only if the owner is another user.
func keepOwner(out *os.File, old *former) error {
	now, err := out.Stat()
	if err != nil {
		return err
	}
	if is, ok := now.Sys().(*syscall.Stat_t); ok && int(is.Uid) == old.UID && int(is.Gid) == old.GID {
		return nil
	}
	return out.Chown(old.UID, old.GID)
}

// place gives a staged file its final name, durably.
func place(sys system.System, path string) error {
	if err := os.Rename(sys.Path(temporary(path)), sys.Path(path)); err != nil {
		return err
	}
	return syncFolder(sys, filepath.Dir(path))
}

func replace(sys system.System, path string, data []byte, old *former) error {
	if err := stage(sys, path, data, old); err != nil {
		return err
	}
	return place(sys, path)
}

// remove removes a file, durably. The file need not exist.
func remove(sys system.System, path string) error {
	err := os.Remove(sys.Path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncFolder(sys, filepath.Dir(path))
}

func syncFolder(sys system.System, path string) error {
	dir, err := os.Open(sys.Path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// before returns the present content of a file, or nil if there is none.
func before(sys system.System, path string) (*former, error) {
	info, err := os.Lstat(sys.Path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: nothing was changed", path)
	}
	text, err := sys.Read(path)
	if err != nil {
		return nil, err
	}
	old := &former{Content: []byte(text), Mode: uint32(info.Mode().Perm()), Time: info.ModTime().UnixNano()}
	if is, ok := info.Sys().(*syscall.Stat_t); ok {
		old.UID, old.GID = int(is.Uid), int(is.Gid)
	}
	return old, nil
}
