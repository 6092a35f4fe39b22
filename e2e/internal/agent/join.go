// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"io"
	"net"
	"time"
)

// Program is the path of the agent's program in the guest. The program's file in the initramfs no
// longer has a path, but process 1 still runs it.
const Program = "/proc/1/exe"

// JoinCommand is the agent's sub-command that calls Join.
const JoinCommand = "join"

// joinLimit is long enough for a busy machine, on which the socket appears late.
const joinLimit = 5 * time.Minute

// Join connects in and out with a socket of this guest. It waits until a program listens there. The
// rig uses Join to communicate with a VM in this VM.
func Join(path string, in io.Reader, out io.Writer) error {
	conn, err := dial(path)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		// The peer sees the end of input; its remaining output still arrives.
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
			return nil, fmt.Errorf("no program listens: %w", err)
		}
	}
}
