// SPDX-License-Identifier: Apache-2.0

// Package libnbd stands in for libguestfs.org/libnbd, which no module proxy has. KubeVirt reads disks of
// backups through it, and CDI disks of VMware, which no test here makes: whoever tries is told so.
package libnbd

// What KubeVirt and CDI name of the real one.
const (
	CONTEXT_BASE_ALLOCATION   = "base:allocation"
	CONTEXT_QEMU_DIRTY_BITMAP = "qemu:dirty-bitmap:"
	STATE_HOLE                = 1
	STATE_ZERO                = 2
	STATE_DIRTY               = 1
)

// CMD_FLAG_REQ_ONE asks for one extent.
const CMD_FLAG_REQ_ONE CmdFlag = 8

var errNone = &LibnbdError{Op: "libnbd", Errmsg: "this program has been compiled without it"}

// CmdFlag is how something is asked for.
type CmdFlag uint32

// LibnbdError is what all fails with.
type LibnbdError struct{ Op, Errmsg string }

func (e *LibnbdError) Error() string { return e.Op + ": " + e.Errmsg }

// PreadOptargs is what a read may be told besides.
type PreadOptargs struct {
	FlagsSet bool
	Flags    CmdFlag
}

// BlockStatusOptargs is what a question for extents may be told besides.
type BlockStatusOptargs struct {
	FlagsSet bool
	Flags    CmdFlag
}

// ExtentCallback is told of extents.
type ExtentCallback func(string, uint64, []uint32, *int) int

// LibnbdExtent is a piece of a disk.
type LibnbdExtent struct{ Length, Flags uint64 }

// Libnbd is a connection, of which there is none.
type Libnbd struct{}

// Create makes none.
func Create() (*Libnbd, error) { return nil, errNone }

// Close is refused, as all that follows.
func (*Libnbd) Close() *LibnbdError { return errNone }

// AddMetaContext is refused.
func (*Libnbd) AddMetaContext(string) error { return errNone }

// CanMetaContext is refused.
func (*Libnbd) CanMetaContext(string) (bool, error) { return false, errNone }

// GetSize is refused.
func (*Libnbd) GetSize() (uint64, error) { return 0, errNone }

// SetExportName is refused.
func (*Libnbd) SetExportName(string) error { return errNone }

// ConnectUnix is refused.
func (*Libnbd) ConnectUnix(string) error { return errNone }

// ConnectUri is refused.
func (*Libnbd) ConnectUri(string) error { return errNone }

// Pread is refused.
func (*Libnbd) Pread([]byte, uint64, *PreadOptargs) error { return errNone }

// BlockStatus is refused.
func (*Libnbd) BlockStatus(uint64, uint64, ExtentCallback, *BlockStatusOptargs) error {
	return errNone
}

// BlockStatus64 is refused.
func (*Libnbd) BlockStatus64(uint64, uint64, func(string, uint64, []LibnbdExtent, *int) int, any) error {
	return errNone
}
