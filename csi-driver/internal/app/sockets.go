// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"net"
	"path/filepath"

	"stargate/csi-driver/internal/grpcserver"
)

// sockets has all listeners of the driver. A listener is nil if it is not configured.
type sockets struct{ web, csi, hooks, registration net.Listener }

// listen opens all listeners, or none. A connection waits until the driver serves it. listen opens
// kubelet's socket last, because kubelet connects to the other sockets as soon as it detects this
// socket.
func listen(c Config) (*sockets, error) {
	s := &sockets{}
	if err := s.open(c); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *sockets) open(c Config) (err error) {
	if c.HTTP != "" {
		if s.web, err = net.Listen("tcp", c.HTTP); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
	}
	if s.csi, err = grpcserver.Listen(c.Endpoint); err != nil {
		return fmt.Errorf("CSI services: %w", err)
	}
	if c.NodeHooks != "" {
		if s.hooks, err = grpcserver.Listen(c.NodeHooks); err != nil {
			return fmt.Errorf("node hooks: %w", err)
		}
	}
	if c.Registration == "" {
		return nil
	}
	if s.registration, err = grpcserver.Listen(filepath.Join(c.Registration, c.Driver.Name+"-reg.sock")); err != nil {
		return fmt.Errorf("registration with kubelet: %w", err)
	}
	return nil
}

// close closes the sockets that no server serves. A server closes its own socket.
func (s *sockets) close() {
	for _, l := range []net.Listener{s.registration, s.hooks, s.csi, s.web} {
		if l != nil {
			l.Close()
		}
	}
}
