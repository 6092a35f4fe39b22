// SPDX-License-Identifier: Apache-2.0

// Package wire is the protocol between the rig and the agent in a guest. One channel carries any
// number of sessions, each a running command with its streams. The channel is a virtio serial port.
// It needs no network in the guest and, unlike TCP, no clock, which jumps under -icount.
//
// A data frame may be sent only against a credit. An end has Window of them and gets one back with
// each Ack, which the other end sends when it has passed the data on. So a queue of Window frames
// per session never overflows, and a command whose output is not read does not stop others.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Kind is the kind of a frame.
type Kind uint8

// The kinds of frames. Open, Stdin, EOF, Signal, Resize and Close go towards the guest, Ready,
// Stdout, Stderr and Exit come from it, Ack goes both ways.
const (
	Ready  Kind = iota + 1 // the agent is there (session 0)
	Open                   // JSON of Request: start a command
	Stdin                  // data
	Stdout                 // data
	Stderr                 // data
	EOF                    // standard input has ended
	Ack                    // one data frame was consumed
	Exit                   // uint32: exit status; the session is over
	Signal                 // uint32: send it to the command
	Resize                 // two uint32: rows and columns of the terminal
	Close                  // the client has gone: end the command
)

const (
	// Window is the number of data frames of a session, each way, that may be in transit.
	Window = 16
	// MaxData is the most data in one frame.
	MaxData = 16 << 10
	// queue holds everything that a session can have in transit towards one end: data of both
	// output streams, acks, and the frames that occur once.
	queue = 4 * Window

	headerSize = 9
)

// Frame is the unit of the protocol.
type Frame struct {
	Session uint32
	Kind    Kind
	Data    []byte
}

// Request asks for a command to be run (or, with a Verb, for an action of the rig itself).
type Request struct {
	Verb     string   `json:"verb,omitempty"`
	Guest    string   `json:"guest,omitempty"`
	Args     []string `json:"args"`
	Terminal bool     `json:"terminal,omitempty"`
	Rows     uint32   `json:"rows,omitempty"`
	Columns  uint32   `json:"columns,omitempty"`
}

// Writer sends frames, from many goroutines.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Send writes one frame.
func (w *Writer) Send(f Frame) error {
	if len(f.Data) > MaxData {
		return fmt.Errorf("frame of %d bytes", len(f.Data))
	}
	buf := make([]byte, headerSize+len(f.Data))
	binary.LittleEndian.PutUint32(buf, f.Session)
	buf[4] = byte(f.Kind)
	binary.LittleEndian.PutUint32(buf[5:], uint32(len(f.Data)))
	copy(buf[headerSize:], f.Data)
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(buf)
	return err
}

// Read reads one frame.
func Read(r io.Reader) (Frame, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return Frame{}, err
	}
	size := binary.LittleEndian.Uint32(header[5:])
	if size > MaxData {
		return Frame{}, fmt.Errorf("frame of %d bytes: the channel is out of step", size)
	}
	f := Frame{Session: binary.LittleEndian.Uint32(header[:]), Kind: Kind(header[4]), Data: make([]byte, size)}
	_, err := io.ReadFull(r, f.Data)
	return f, err
}

// Queue returns a channel that never blocks a sender within its credits.
func Queue() chan Frame { return make(chan Frame, queue) }

// Numbers encodes the payload of Exit, Signal and Resize.
func Numbers(numbers ...uint32) []byte {
	buf := make([]byte, 4*len(numbers))
	for i, n := range numbers {
		binary.LittleEndian.PutUint32(buf[4*i:], n)
	}
	return buf
}

// Number decodes the i-th number of a payload; a missing one is 0.
func (f Frame) Number(i int) uint32 {
	if len(f.Data) < 4*(i+1) {
		return 0
	}
	return binary.LittleEndian.Uint32(f.Data[4*i:])
}

// OpenFrame encodes a request.
func OpenFrame(session uint32, r Request) (Frame, error) {
	data, err := json.Marshal(r)
	if err == nil && len(data) > MaxData {
		err = fmt.Errorf("a command of %d bytes is too long: put it in a file", len(data))
	}
	return Frame{Session: session, Kind: Open, Data: data}, err
}

// Request decodes an Open frame.
func (f Frame) Request() (Request, error) {
	var r Request
	err := json.Unmarshal(f.Data, &r)
	return r, err
}

// Credits counts the data frames that may still be sent.
type Credits chan struct{}

// NewCredits returns a full window.
func NewCredits() Credits {
	c := make(Credits, Window)
	for i := 0; i < Window; i++ {
		c <- struct{}{}
	}
	return c
}

// Take waits for a credit; it returns false if done is closed first.
func (c Credits) Take(done <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-done:
		return false
	}
}

// Give returns a credit; more than were taken are ignored.
func (c Credits) Give() {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Pump sends the bytes of r as data frames until it ends or done is closed.
func Pump(w *Writer, session uint32, kind Kind, r io.Reader, credits Credits, done <-chan struct{}) error {
	buf := make([]byte, MaxData)
	for {
		if !credits.Take(done) {
			return nil
		}
		n, err := r.Read(buf)
		if n > 0 {
			if e := w.Send(Frame{Session: session, Kind: kind, Data: buf[:n]}); e != nil {
				return e
			}
		} else {
			credits.Give()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
