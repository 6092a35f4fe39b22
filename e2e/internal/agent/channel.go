// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// channel is the guest's end of the virtio serial port. Its reads and writes block, because poll of
// that driver does not work for Go.
type channel int

// OpenChannel finds the port by its name and opens it.
func OpenChannel() (channel, error) {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
		if err != nil {
			return 0, err
		}
		for _, path := range names {
			name, err := os.ReadFile(path)
			if err == nil && strings.TrimSpace(string(name)) == Port {
				return openPort("/dev/" + filepath.Base(filepath.Dir(path)))
			}
		}
		if time.Now().After(deadline) {
			return 0, errors.New("the rig's serial port did not appear")
		}
	}
}

func openPort(path string) (channel, error) {
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("opening %s: %w", path, err)
	}
	return channel(fd), nil
}

func (c channel) Read(p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(c), p)
		switch {
		case err == syscall.EINTR || err == syscall.EAGAIN:
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n > 0:
			return n, nil
		default: // the rig is not connected yet
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func (c channel) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := syscall.Write(int(c), p[done:])
		if err == syscall.EINTR || err == syscall.EAGAIN {
			continue
		}
		if err != nil {
			return done, os.NewSyscallError("write", err)
		}
		done += n
	}
	return done, nil
}
