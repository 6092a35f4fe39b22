// SPDX-License-Identifier: Apache-2.0

// Package libnbd replaces libguestfs.org/libnbd, which no module proxy has. KubeVirt uses it for
// disks of backups, and CDI for disks of VMware. No test uses such a disk. Each function returns an
// error.
package libnbd

// Names of the real package that KubeVirt and CDI use.
const (
	CONTEXT_BASE_ALLOCATION   = "base:allocation"
	CONTEXT_QEMU_DIRTY_BITMAP = "qemu:dirty-bitmap:"
	STATE_HOLE                = 1
	STATE_ZERO                = 2
	STATE_DIRTY               = 1
)

// CMD_FLAG_REQ_ONE asks for one extent.
const CMD_FLAG_REQ_ONE CmdFlag = 8

var errNone = &LibnbdError{Op: "libnbd", Errmsg: "this program has been compiled without libnbd"}

// CmdFlag is a flag of a request.
type CmdFlag uint32

// LibnbdError is the error of every operation.
type LibnbdError struct{ Op, Errmsg string }

func (e *LibnbdError) Error() string { return e.Op + ": " + e.Errmsg }

// PreadOptargs are the optional arguments of a read.
type PreadOptargs struct {
	FlagsSet bool
	Flags    CmdFlag
}

// BlockStatusOptargs are the optional arguments of a request for extents.
type BlockStatusOptargs struct {
	FlagsSet bool
	Flags    CmdFlag
}

// ExtentCallback receives extents.
type ExtentCallback func(string, uint64, []uint32, *int) int

// LibnbdExtent is an extent of a disk.
type LibnbdExtent struct{ Length, Flags uint64 }

// Libnbd is a connection, which never exists.
type Libnbd struct{}

// Create fails.
func Create() (*Libnbd, error) { return nil, errNone }

// Close fails, like all operations below.
func (*Libnbd) Close() *LibnbdError { return errNone }

// AddMetaContext fails.
func (*Libnbd) AddMetaContext(string) error { return errNone }

// CanMetaContext fails.
func (*Libnbd) CanMetaContext(string) (bool, error) { return false, errNone }

// GetSize fails.
func (*Libnbd) GetSize() (uint64, error) { return 0, errNone }

// SetExportName fails.
func (*Libnbd) SetExportName(string) error { return errNone }

// ConnectUnix fails.
func (*Libnbd) ConnectUnix(string) error { return errNone }

// ConnectUri fails.
func (*Libnbd) ConnectUri(string) error { return errNone }

// Pread fails.
func (*Libnbd) Pread([]byte, uint64, *PreadOptargs) error { return errNone }

// BlockStatus fails.
func (*Libnbd) BlockStatus(uint64, uint64, ExtentCallback, *BlockStatusOptargs) error {
	return errNone
}

// BlockStatus64 fails.
func (*Libnbd) BlockStatus64(uint64, uint64, func(string, uint64, []LibnbdExtent, *int) int, any) error {
	return errNone
}
