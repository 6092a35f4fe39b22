// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"stargate/e2e/internal/wire"
)

// runTerminal runs the command on its own pseudo-terminal.
func (s *session) runTerminal(request wire.Request) (int, error) {
	master, slave, err := openTerminal()
	if err != nil {
		return 0, err
	}
	defer master.Close()
	if err := setSize(master, request.Rows, request.Columns); err != nil {
		slave.Close()
		return 0, err
	}
	cmd := command(request)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = s.start(cmd)
	slave.Close()
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	s.tty = master
	s.mu.Unlock()
	input, err := duplicate(master)
	if err != nil {
		return 0, err
	}
	go s.feed(input)
	return s.finish(cmd, map[*os.File]wire.Kind{master: wire.Stdout}), nil
}

func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	var number, unlock int32
	err = ioctl(master, syscall.TIOCGPTN, unsafe.Pointer(&number))
	if err == nil {
		err = ioctl(master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

func setSize(tty *os.File, rows, columns uint32) error {
	size := [4]uint16{uint16(rows), uint16(columns)}
	return ioctl(tty, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

// duplicate returns a second descriptor of a file, so that the input side can close its own.
func duplicate(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var dupErr error
	if err := raw.Control(func(old uintptr) { fd, dupErr = syscall.Dup(int(old)) }); err != nil {
		return nil, err
	}
	if dupErr != nil {
		return nil, dupErr
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	if err := raw.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg))
	}); err != nil {
		return err
	}
	if errno != 0 {
		return os.NewSyscallError("ioctl", errno)
	}
	return nil
}
