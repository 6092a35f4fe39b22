// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"io"
	"net"
	"time"
)

// Program is the agent's own program, inside the guest: its first process,
// whose file lies in the initramfs, where no path leads to any more.
const Program = "/proc/1/exe"

// JoinCommand is the agent's sub-command that calls Join.
const JoinCommand = "join"

// joinLimit is for a busy machine: whoever makes the socket is about to.
const joinLimit = 5 * time.Minute

// Join joins in and out with a socket that somebody in this guest listens on,
// or is about to: so the rig speaks with a machine within the machine.
func Join(path string, in io.Reader, out io.Writer) error {
	conn, err := dial(path)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		// Whoever listens sees the end; what it says after that still comes.
		_, _ = io.Copy(conn, in)
		_ = conn.CloseWrite()
	}()
	if _, err := io.Copy(out, conn); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func dial(path string) (*net.UnixConn, error) {
	for deadline := time.Now().Add(joinLimit); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		if err == nil {
			return conn, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("nobody listens: %w", err)
		}
	}
}
