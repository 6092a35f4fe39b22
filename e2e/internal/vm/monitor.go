// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// monitor speaks QMP with a running QEMU.
type monitor struct {
	mu      sync.Mutex
	conn    net.Conn
	decoder *json.Decoder
}

// newMonitor reads QEMU's greeting, and ends the negotiation of capabilities.
func newMonitor(conn net.Conn) (*monitor, error) {
	m := &monitor{conn: conn, decoder: json.NewDecoder(conn)}
	var greeting struct{ QMP interface{} }
	if err := conn.SetDeadline(time.Now().Add(startLimit)); err != nil {
		return nil, err
	}
	if err := m.decoder.Decode(&greeting); err != nil {
		return nil, fmt.Errorf("QEMU's monitor does not answer: %w", err)
	}
	return m, m.execute("qmp_capabilities")
}

// startLimit is long enough for the start of QEMU in a node on a busy machine, where QEMU itself is
// emulated. On this host, the start takes a fraction of a second.
const startLimit = 5 * time.Minute

// monitorLimit is long enough for a busy machine. The monitor itself answers at once.
const monitorLimit = 60 * time.Second

// execute runs a command without arguments and waits for its answer.
func (m *monitor) execute(command string) error {
	_, err := m.ask(command, nil)
	return err
}

// human runs a command of QEMU's monitor for people, because QMP lacks some commands. Any output of
// such a command is an error.
func (m *monitor) human(command string) error {
	answer, err := m.ask("human-monitor-command", map[string]string{"command-line": command})
	if err != nil {
		return err
	}
	var said string
	if err := json.Unmarshal(answer, &said); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	if said != "" {
		return fmt.Errorf("%s: %s", command, strings.TrimSpace(said))
	}
	return nil
}

func (m *monitor) ask(command string, arguments map[string]string) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.conn.SetDeadline(time.Now().Add(monitorLimit)); err != nil {
		return nil, err
	}
	request := map[string]interface{}{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := json.NewEncoder(m.conn).Encode(request); err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	for {
		var answer struct {
			Return *json.RawMessage
			Error  *struct{ Desc string }
		}
		if err := m.decoder.Decode(&answer); err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
		if answer.Error != nil {
			return nil, fmt.Errorf("%s: %s", command, answer.Error.Desc)
		}
		if answer.Return != nil {
			return *answer.Return, nil
		} // other messages are events
	}
}
