// SPDX-License-Identifier: Apache-2.0

// Package keeper serves the FUSE mounts of a node. For each mount, a server (stargatefs-fuse
// --kept) runs as a child of the keeper, which replaces a server that ends. The driver is the
// keeper's only caller. Driver and keeper hold the same descriptors: /dev/fuse of the mount, and
// the memory that servers inherit. So either process may end, and its successor gets the
// descriptors from the other process (docs/decisions/0011-keeper-of-mounts.md).
package keeper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Protocol is the version of the call that starts a server. The other calls never change, so that a
// driver can get the descriptors from a keeper of any release.
const Protocol = 1

// Calls of the keeper.
const (
	callServe = "serve" // takes /dev/fuse of a mount, and the memory of its last server; returns the memory
	callHold  = "hold"  // returns the same descriptors of a server
	callList  = "list"
)

// Spec describes the mount that a server serves.
type Spec struct {
	// Name is the name of the volume. It also identifies the server, because a volume has at
	// most one.
	Name string `json:"name"`
	// Volume is the path of the volume's file.
	Volume string `json:"volume"`
	// Options are the options for stargatefs-fuse -o.
	Options []string `json:"options,omitempty"`
}

// Server describes a server of the keeper.
type Server struct {
	Spec
	// ID differs for each mount.
	ID       string `json:"id"`
	Pid      int    `json:"pid"`
	Restarts int    `json:"restarts"`
}

type request struct {
	Protocol int    `json:"protocol"`
	Call     string `json:"call"`
	Spec     Spec   `json:"spec"` // for callHold, only its name
}

type reply struct {
	Protocol int    `json:"protocol"`
	Release  string `json:"release"`
	// Instance differs for each process of the keeper.
	Instance string   `json:"instance"`
	Error    string   `json:"error,omitempty"`
	Servers  []Server `json:"servers,omitempty"`
}

const (
	longest     = 4 << 20 // length of a message in bytes
	mostAtOnce  = 2       // number of descriptors with a message
	messageEnds = '\n'
)

// send writes a message. The descriptors go with its first byte.
func send(c *net.UnixConn, message any, files ...*os.File) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	text = append(text, messageEnds)
	var rights []byte
	if len(files) > 0 {
		var fds []int
		for _, f := range files {
			fds = append(fds, int(f.Fd()))
		}
		rights = unix.UnixRights(fds...)
	}
	n, _, err := c.WriteMsgUnix(text, rights, nil)
	runtime.KeepAlive(files)
	if err == nil && n < len(text) {
		_, err = c.Write(text[n:])
	}
	return err
}

// receive reads a message, and the descriptors that came with it. The caller must close the
// descriptors.
func receive(c *net.UnixConn, message any) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	var text []byte
	part, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*mostAtOnce))
	for {
		n, nrights, _, _, err := c.ReadMsgUnix(part, rights)
		if err != nil {
			return files, err
		}
		got, err := filesOf(rights[:nrights])
		files = append(files, got...)
		if err != nil {
			return files, err
		}
		if n == 0 {
			return files, io.ErrUnexpectedEOF
		}
		text = append(text, part[:n]...)
		if end := bytes.IndexByte(text, messageEnds); end >= 0 {
			return files, json.Unmarshal(text[:end], message)
		}
		if len(text) > longest {
			return files, errors.New("the message is too long")
		}
	}
}

func filesOf(rights []byte) (files []*os.File, err error) {
	if len(rights) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), fmt.Sprintf("descriptor %d", fd)))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
