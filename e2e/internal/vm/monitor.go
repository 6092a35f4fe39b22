// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"
)

// monitor speaks QMP with a running QEMU.
type monitor struct {
	mu      sync.Mutex
	conn    net.Conn
	decoder *json.Decoder
}

// newMonitor reads the greeting and leaves the negotiation mode.
func newMonitor(conn net.Conn) (*monitor, error) {
	m := &monitor{conn: conn, decoder: json.NewDecoder(conn)}
	var greeting struct{ QMP interface{} }
	if err := conn.SetDeadline(time.Now().Add(monitorLimit)); err != nil {
		return nil, err
	}
	if err := m.decoder.Decode(&greeting); err != nil {
		return nil, fmt.Errorf("QEMU's monitor does not answer: %w", err)
	}
	return m, m.execute("qmp_capabilities")
}

// monitorLimit is for a busy machine; the monitor itself answers at once.
const monitorLimit = 60 * time.Second

// execute runs a command without arguments and waits for its answer.
func (m *monitor) execute(command string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.conn.SetDeadline(time.Now().Add(monitorLimit)); err != nil {
		return err
	}
	if err := json.NewEncoder(m.conn).Encode(map[string]string{"execute": command}); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	for {
		var answer struct {
			Return *json.RawMessage
			Error  *struct{ Desc string }
		}
		if err := m.decoder.Decode(&answer); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
		if answer.Error != nil {
			return fmt.Errorf("%s: %s", command, answer.Error.Desc)
		}
		if answer.Return != nil {
			return nil
		} // anything else is an event
	}
}
