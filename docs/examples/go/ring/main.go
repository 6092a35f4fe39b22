// SPDX-License-Identifier: Apache-2.0

// Command ring works like ring.c: ring produce FILE, ring consume FILE.
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	stargate "stargate/lib"
)

const (
	room  = 65536
	block = 10000
)

// ring is the mapped file with its cursor, for both producer and consumer. It implements io.Writer
// and io.Reader, which keep the order of bytes.
type ring struct {
	bytes  []byte
	cursor *stargate.Cursor
}

func open(path string) (*ring, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := syscall.Fallocate(int(file.Fd()), 0, 0, room); err != nil {
		return nil, err
	}
	bytes, err := syscall.Mmap(int(file.Fd()), 0, room, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	cursor, err := stargate.OpenCursor(path, filepath.Base(path), room)
	return &ring{bytes, cursor}, err
}

func (r *ring) Write(from []byte) (int, error) {
	done := 0
	for done < len(from) {
		at, n, err := r.cursor.PublishAt(stargate.Forever)
		if err != nil {
			return done, err
		}
		n = uint64(copy(r.bytes[at:at+n], from[done:]))
		if err := r.cursor.Publish(n); err != nil {
			return done, err
		}
		done += int(n)
	}
	return done, nil
}

func (r *ring) Read(to []byte) (int, error) {
	at, n, err := r.cursor.ConsumeAt(stargate.Forever)
	if err != nil {
		return 0, err
	}
	n = uint64(copy(to, r.bytes[at:at+n]))
	return int(n), r.cursor.Consume(n)
}

func produce(r *ring) error {
	buffer := make([]byte, block)
	for {
		n, err := io.ReadFull(os.Stdin, buffer)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		if err := binary.Write(r, binary.LittleEndian, uint32(n)); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		if _, err := r.Write(buffer[:n]); err != nil {
			return err
		}
	}
}

func consume(r *ring) error {
	for {
		var n uint32
		if err := binary.Read(r, binary.LittleEndian, &n); err != nil || n == 0 {
			return err
		}
		if _, err := io.CopyN(os.Stdout, r, int64(n)); err != nil {
			return err
		}
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "Usage: ring produce|consume FILE")
		os.Exit(2)
	}
	r, err := open(os.Args[2])
	if err == nil && os.Args[1] == "produce" {
		err = produce(r)
	} else if err == nil {
		err = consume(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ring:", err)
		os.Exit(1)
	}
}
