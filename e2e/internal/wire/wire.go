// SPDX-License-Identifier: Apache-2.0

// Package wire is the protocol between the rig and the agent in a guest. One channel carries any
// number of sessions. A session is a running command with its streams. The channel is a virtio
// serial port. It needs no network in the guest. Unlike TCP, it also needs no clock: under -icount,
// the clock jumps.
//
// Each data frame uses up a credit of its sender. A sender has Window credits, and gets one back
// with each Ack. The receiver sends the Ack when it has passed the data on. So a queue of Window
// frames for a session never overflows. If a client does not read the output of its command, other
// commands still continue.
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

// The kinds of frames. The rig sends Open, Stdin, EOF, Signal, Resize and Close. The guest sends
// Ready, Stdout, Stderr and Exit. Both send Ack.
const (
	Ready  Kind = iota + 1 // the agent is ready (session 0)
	Open                   // starts a command; the data is a Request as JSON
	Stdin                  // data for standard input
	Stdout                 // data from standard output
	Stderr                 // data from standard error
	EOF                    // standard input has ended
	Ack                    // the receiver has passed on one data frame
	Exit                   // the session has ended; the data is the exit status, a uint32
	Signal                 // the command gets a signal; the data is its number, a uint32
	Resize                 // the terminal has a new size; the data is two uint32: rows, columns
	Close                  // the client has disconnected, so the command must end
)

const (
	// Window is the maximum number of data frames of a session in transit, in each direction.
	Window = 16
	// MaxData is the maximum number of bytes of data in a frame.
	MaxData = 16 << 10
	// queue is enough for all frames of a session in transit to one end: the data of both
	// output streams, the acks, and the frames that occur once.
	queue = 4 * Window

	headerSize = 9
)

// Frame is the unit of the protocol.
type Frame struct {
	Session uint32
	Kind    Kind
	Data    []byte
}

// Request is a request to run a command in a guest. With a Verb, it requests an action of the rig.
type Request struct {
	Verb     string   `json:"verb,omitempty"`
	Guest    string   `json:"guest,omitempty"`
	Args     []string `json:"args"`
	Terminal bool     `json:"terminal,omitempty"`
	Rows     uint32   `json:"rows,omitempty"`
	Columns  uint32   `json:"columns,omitempty"`
}

// Writer sends frames. Several goroutines may use it at the same time.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Send writes one frame.
func (w *Writer) Send(f Frame) error {
	if len(f.Data) > MaxData {
		return fmt.Errorf("a frame of %d bytes is too long", len(f.Data))
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
		return Frame{}, fmt.Errorf("a frame claims %d bytes: the channel has lost or added bytes", size)
	}
	f := Frame{Session: binary.LittleEndian.Uint32(header[:]), Kind: Kind(header[4]), Data: make([]byte, size)}
	_, err := io.ReadFull(r, f.Data)
	return f, err
}

// Queue returns a channel of frames. It never blocks a sender that has credits.
func Queue() chan Frame { return make(chan Frame, queue) }

// Numbers encodes the payload of Exit, Signal and Resize.
func Numbers(numbers ...uint32) []byte {
	buf := make([]byte, 4*len(numbers))
	for i, n := range numbers {
		binary.LittleEndian.PutUint32(buf[4*i:], n)
	}
	return buf
}

// Number returns the i-th number of a payload, or 0 if the payload is too short.
func (f Frame) Number(i int) uint32 {
	if len(f.Data) < 4*(i+1) {
		return 0
	}
	return binary.LittleEndian.Uint32(f.Data[4*i:])
}

// OpenFrame returns an Open frame with the request.
func OpenFrame(session uint32, r Request) (Frame, error) {
	data, err := json.Marshal(r)
	if err == nil && len(data) > MaxData {
		err = fmt.Errorf("a command of %d bytes is too long: put it in a file", len(data))
	}
	return Frame{Session: session, Kind: Open, Data: data}, err
}

// Request returns the request in an Open frame.
func (f Frame) Request() (Request, error) {
	var r Request
	err := json.Unmarshal(f.Data, &r)
	return r, err
}

// Credits has one element for each data frame that a sender may still send.
type Credits chan struct{}

// NewCredits returns Window credits.
func NewCredits() Credits {
	c := make(Credits, Window)
	for i := 0; i < Window; i++ {
		c <- struct{}{}
	}
	return c
}

// Take waits for a credit. It returns false if done is closed first.
func (c Credits) Take(done <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-done:
		return false
	}
}

// Give gives a credit back. If all credits have been given back, it does nothing.
func (c Credits) Give() {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Pump sends the bytes of r as data frames, until r ends or done is closed.
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
