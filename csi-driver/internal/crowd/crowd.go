// SPDX-License-Identifier: Apache-2.0

// Package crowd limits the connections of a port that any pod may reach.
package crowd

import (
	"net"
	"slices"
	"sync"
)

// crowd is a listener with a limited number of connections. A further connection replaces the
// oldest connection of the address that has the most. So a client that opens many connections
// neither closes those of other addresses nor uses up the program's memory.
type crowd struct {
	net.Listener
	most int
	mu   sync.Mutex
	open []*member // the oldest first
}

// Limit returns a listener that accepts at most the given number of connections.
func Limit(l net.Listener, most int) net.Listener { return &crowd{Listener: l, most: most} }

type member struct {
	net.Conn
	of   *crowd
	from string
}

// Accept accepts a connection, and closes another one if there are too many.
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	from, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		from = "" // without TCP, all connections count as connections of one client
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
		one.Conn.Close() // the connection's server gets an error, and closes it again
	}
	return m, nil
}

// tooMany returns the index of the oldest connection from the address that has the most.
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

// Close closes the connection and makes room for another one.
func (m *member) Close() error {
	m.of.mu.Lock()
	if at := slices.Index(m.of.open, m); at >= 0 {
		m.of.open = slices.Delete(m.of.open, at, at+1)
	}
	m.of.mu.Unlock()
	return m.Conn.Close()
}
