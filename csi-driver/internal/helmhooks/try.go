// SPDX-License-Identifier: Apache-2.0

package helmhooks

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"stargate/csi-driver/internal/mounts"
	"stargate/csi-driver/internal/pool"
)

// Files that a volume has for VMs (D11), in each kind of zone.
const (
	region      = ".stargate/region"
	description = ".stargate/volume.json"
)

// The first bytes of a formatted volume.
const tried = 1 << 20

// Try tests the volume that is mounted in a folder of a pod. It writes a file and reads it. If
// volumes are files for VMs, it checks that the volume has memory for VMs. It reports its results.
func Try(dir string) (string, error) {
	info, err := os.Stat(filepath.Join(dir, region))
	if errors.Is(err, fs.ErrNotExist) {
		// A volume that is mounted by FUSE has only files.
		if at, err := mounts.New().At(dir); err == nil && at != nil && at.FsType == mounts.Served {
			return tryFiles(dir)
		}
		return "", fmt.Errorf("%s is no volume of StargateFS: it has no %s", dir, region)
	}
	if err != nil {
		return "", err
	}
	// Both kinds of zone have a description. In a mount, the module writes the description,
	// without a kind, and a pod may not open the memory there.
	text, err := os.ReadFile(filepath.Join(dir, description))
	if errors.Is(err, fs.ErrNotExist) {
		return tryFiles(dir)
	}
	if err != nil {
		return "", err
	}
	var t told
	if err := json.Unmarshal(text, &t); err != nil {
		return "", fmt.Errorf("%s: %w", description, err)
	}
	if t.Kind != pool.File {
		return tryFiles(dir)
	}
	return tryRegion(dir, t, info.Size())
}

// told has the content of a volume's description.
type told struct {
	Kind   pool.Kind `json:"kind"`
	Volume string    `json:"volume"`
	Size   int64     `json:"size"`
}

// tryFiles tests a volume that is mounted as a file system.
func tryFiles(dir string) (string, error) {
	f, err := os.CreateTemp(dir, "helm-test-")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	wrote := make([]byte, tried)
	if _, err := rand.Read(wrote); err != nil {
		return "", err
	}
	if _, err := f.Write(wrote); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	read, err := os.ReadFile(f.Name())
	if err != nil {
		return "", err
	}
	if !bytes.Equal(read, wrote) {
		return "", fmt.Errorf("%s: the bytes read are not the bytes written", f.Name())
	}
	return fmt.Sprintf("%s: %d bytes written and read", dir, tried), nil
}

// tryRegion tests a volume that pods get only as memory for VMs.
func tryRegion(dir string, t told, size int64) (string, error) {
	if t.Size != size {
		return "", fmt.Errorf("%s: has %d bytes, not the %d bytes in %s", region, size, t.Size, description)
	}
	f, err := os.OpenFile(filepath.Join(dir, region), os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	begin := make([]byte, tried)
	if _, err := f.ReadAt(begin, 0); err != nil {
		return "", fmt.Errorf("%s: %w", region, err)
	}
	if bytes.Count(begin, []byte{0}) == len(begin) {
		return "", fmt.Errorf("%s: not formatted", region)
	}
	return fmt.Sprintf("%s: volume %s, %d bytes of memory for VMs", dir, t.Volume, size), nil
}
