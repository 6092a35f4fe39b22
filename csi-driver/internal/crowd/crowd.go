// SPDX-License-Identifier: Apache-2.0

// Package crowd limits the connections of a port that any pod may reach.
package crowd

import (
	"net"
	"slices"
	"sync"
)

// crowd is a listener with at most so many connections. A further one takes the place of the oldest
// from the address that has the most. So a client that makes or holds connections does not end
// those of other addresses, nor take the memory of the program.
type crowd struct {
	net.Listener
	most int
	mu   sync.Mutex
	open []*member // the oldest first
}

// Limit returns a listener with at most so many connections.
func Limit(l net.Listener, most int) net.Listener { return &crowd{Listener: l, most: most} }

type member struct {
	net.Conn
	of   *crowd
	from string
}

// Accept closes a connection if there are too many.
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	from, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		from = "" // no TCP: all are one client
	}
	m := &member{conn, c, from}
	c.mu.Lock()
	c.open = append(c.open, m)
	var one *member
	if len(c.open) > c.most {
		at := c.tooMany()
		one = c.open[at]
		c.open = slices.Delete(c.open, at, at+1)
	}
	c.mu.Unlock()
	if one != nil {
		one.Conn.Close() // its server sees a broken connection, and closes it again
	}
	return m, nil
}

// tooMany is the place of the oldest connection from the address that has the most.
func (c *crowd) tooMany() (at int) {
	of := map[string]int{}
	for _, m := range c.open {
		of[m.from]++
	}
	for i, m := range c.open {
		if of[m.from] > of[c.open[at].from] {
			at = i
		}
	}
	return at
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
