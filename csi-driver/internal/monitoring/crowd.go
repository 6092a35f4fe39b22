// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"net"
	"slices"
	"sync"
)

// mostConns is far more than kubelet and monitors need.
const mostConns = 64

// crowd is a listener with at most mostConns connections: a further one takes the place of the
// oldest. Any pod may reach the port, so a client that holds connections must not keep kubelet's
// probes waiting, nor take the memory of the driver.
type crowd struct {
	net.Listener
	mu   sync.Mutex
	open []*member // the oldest first
}

type member struct {
	net.Conn
	of *crowd
}

// Accept closes the oldest connection if there are too many.
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	m := &member{conn, c}
	c.mu.Lock()
	c.open = append(c.open, m)
	var oldest *member
	if len(c.open) > mostConns {
		oldest = c.open[0]
		c.open = slices.Delete(c.open, 0, 1)
	}
	c.mu.Unlock()
	if oldest != nil {
		oldest.Conn.Close() // its server sees a broken connection, and closes it again
	}
	return m, nil
}

// Close makes room for another connection.
func (m *member) Close() error {
	m.of.mu.Lock()
	if at := slices.Index(m.of.open, m); at >= 0 {
		m.of.open = slices.Delete(m.of.open, at, at+1)
	}
	m.of.mu.Unlock()
	return m.Conn.Close()
}
