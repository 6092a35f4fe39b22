// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// Program runs real server processes. Its method Run is the Run of the real keeper.
type Program struct {
	// Path is the path of stargatefs-fuse.
	Path string
	// Memory limits the memory that a server may allocate for itself. The volume's memory does
	// not count.
	Memory int64
	// Workers is the number of calls that a server handles at the same time.
	Workers int
	Log     klog.Logger
}

// Numbers of the server's descriptors, in the order of exec.Cmd.ExtraFiles.
const kept = "3,4"

// Run runs one server.
func (p Program) Run(s Spec, mount, memory *os.File, began func(pid int), joined func()) error {
	args := []string{"--kept", kept, fmt.Sprintf("--workers=%d", p.Workers)}
	if len(s.Options) > 0 {
		args = append(args, "-o", strings.Join(s.Options, ","))
	}
	said := &lines{log: p.Log.WithValues("volume", s.Name)}
	cmd := exec.Command(p.Path, append(args, "--", s.Volume)...)
	cmd.ExtraFiles = []*os.File{mount, memory}
	cmd.Stdout, cmd.Stderr = &first{does: joined}, said
	// The server must end with the keeper. The next keeper starts another server for the mount,
	// and two servers would answer the same calls.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	began(cmd.Process.Pid)
	limit := unix.Rlimit{Cur: uint64(p.Memory), Max: uint64(p.Memory)}
	if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_DATA, &limit, nil); err != nil && !errors.Is(err, unix.ESRCH) {
		p.Log.Error(err, "A server has no limit of memory", "volume", s.Name)
	}
	err := cmd.Wait()
	if last := said.last(); err != nil && last != "" {
		return fmt.Errorf("%w: %s", err, last)
	}
	return err
}

// first calls a function when the first byte is written.
type first struct {
	once sync.Once
	does func()
}

func (f *first) Write(text []byte) (int, error) {
	f.once.Do(f.does)
	return len(text), nil
}

// lines logs the lines that a server prints, and keeps the last line.
type lines struct {
	log  klog.Logger
	mu   sync.Mutex
	text []byte
	line string
}

const lineLimit = 4 << 10

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, text...)
	for {
		line, rest, ok := bytes.Cut(l.text, []byte("\n"))
		if !ok && len(l.text) < lineLimit {
			return len(text), nil
		}
		l.text, l.line = rest, strings.TrimPrefix(string(line), "stargatefs-fuse: ")
		l.log.Info("The server says", "line", l.line)
	}
}

func (l *lines) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line
}
