// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"syscall"
	"unsafe"
)

func terminalCall(f *os.File, request uintptr, arg unsafe.Pointer) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(arg))
	if errno != 0 {
		return os.NewSyscallError("ioctl", errno)
	}
	return nil
}

func isTerminal(f *os.File) bool {
	var state syscall.Termios
	return terminalCall(f, syscall.TCGETS, unsafe.Pointer(&state)) == nil
}

// terminalSize returns the terminal's size, or 24 by 80 if the terminal reports no size.
func terminalSize(f *os.File) (rows, columns uint32) {
	var size [4]uint16
	if terminalCall(f, syscall.TIOCGWINSZ, unsafe.Pointer(&size)) != nil || size[0] == 0 {
		return 24, 80
	}
	return uint32(size[0]), uint32(size[1])
}

// rawTerminal makes the terminal pass every key to the guest. The function restore undoes this.
func rawTerminal(f *os.File) (restore func(), err error) {
	var old syscall.Termios
	if err := terminalCall(f, syscall.TCGETS, unsafe.Pointer(&old)); err != nil {
		return nil, err
	}
	raw := old
	raw.Iflag &^= syscall.IGNBRK | syscall.BRKINT | syscall.PARMRK | syscall.ISTRIP | syscall.INLCR | syscall.IGNCR | syscall.ICRNL | syscall.IXON
	raw.Oflag &^= syscall.OPOST
	raw.Lflag &^= syscall.ECHO | syscall.ECHONL | syscall.ICANON | syscall.ISIG | syscall.IEXTEN
	raw.Cflag = raw.Cflag&^(syscall.CSIZE|syscall.PARENB) | syscall.CS8
	raw.Cc[syscall.VMIN], raw.Cc[syscall.VTIME] = 1, 0
	if err := terminalCall(f, syscall.TCSETS, unsafe.Pointer(&raw)); err != nil {
		return nil, err
	}
	// An error means that the terminal no longer exists.
	return func() { _ = terminalCall(f, syscall.TCSETS, unsafe.Pointer(&old)) }, nil
}
