// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/pool"
)

// If the servers of a mount end this often, the keeper drops the mount. Calls on its files then
// fail with ENOTCONN.
const (
	mostRestarts = 10
	withinTime   = time.Minute
)

// Run runs one server of a mount until the server ends. It calls began when the process exists, and
// joined when the server has joined the volume. It returns nil if the mount has ended.
type Run func(s Spec, mount, memory *os.File, began func(pid int), joined func()) error

// Config is the operator's configuration of the keeper.
type Config struct {
	// Dir has the volumes' files. The keeper serves only files in it.
	Dir     string
	Release string
	Run     Run
}

// Keeper runs the servers. When the keeper ends, its servers end, too, and the driver passes their
// mounts to the next keeper.
type Keeper struct {
	config   Config
	instance string
	log      klog.Logger

	mu      sync.Mutex
	servers map[string]*server // servers by the names of their volumes
}

type server struct {
	spec          Spec
	id            string
	mount, memory *os.File

	// Keeper.mu guards these fields.
	pid, restarts int
	began         []time.Time // times of the last starts
}

// New returns a Keeper without servers.
func New(c Config, log klog.Logger) *Keeper {
	return &Keeper{config: c, instance: unique(), log: log, servers: map[string]*server{}}
}

func unique() string {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// Serve handles calls until ctx is done.
func (k *Keeper) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("socket: %w", err)
		}
		go k.answer(c)
	}
}

// patience is the time in which a caller must send its request.
const patience = 10 * time.Second

func (k *Keeper) answer(c net.Conn) {
	defer c.Close()
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	var r request
	got, err := receive(conn, &r)
	if err != nil {
		k.log.V(4).Info("A caller has gone", "reason", err.Error())
		return
	}
	answer := reply{Protocol: Protocol, Release: k.config.Release, Instance: k.instance}
	var files []*os.File
	switch r.Call {
	case callList:
		answer.Servers = k.list()
	case callHold:
		files, answer.Servers, err = k.hold(r.Spec.Name)
	case callServe:
		if r.Protocol != Protocol {
			err = fmt.Errorf("the call has version %d, and this keeper supports version %d", r.Protocol, Protocol)
			break
		}
		files, answer.Servers, err = k.serve(r.Spec, got)
		got = nil
	default:
		err = fmt.Errorf("there is no call %q", r.Call)
	}
	closeAll(got)
	if err != nil {
		answer.Error = err.Error()
	}
	if err := send(conn, answer, files...); err != nil {
		k.log.V(4).Info("A caller has gone", "call", r.Call, "reason", err.Error())
	}
	closeAll(files)
}

func (s *server) seen() Server { return Server{s.spec, s.id, s.pid, s.restarts} }

func (k *Keeper) list() []Server {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []Server
	for _, s := range k.servers {
		all = append(all, s.seen())
	}
	return all
}

func (k *Keeper) hold(name string) ([]*os.File, []Server, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.servers[name]
	if s == nil {
		return nil, nil, fmt.Errorf("volume %s has no server", name)
	}
	files, err := copies(s.mount, s.memory)
	return files, []Server{s.seen()}, err
}

func copies(files ...*os.File) ([]*os.File, error) {
	var all []*os.File
	for _, f := range files {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, os.NewFile(uintptr(fd), f.Name()))
	}
	return all, nil
}

// options are the options that the driver may set for a server.
var options = []string{"ro", "noatime", "errors=continue", "errors=remount-ro"}

func (k *Keeper) check(s Spec) error {
	if !pool.ValidName(s.Name) {
		return fmt.Errorf("%q is no name of a volume", s.Name)
	}
	if filepath.Clean(s.Volume) != s.Volume || filepath.Dir(s.Volume) != k.config.Dir {
		return fmt.Errorf("%q is not in the folder of the volumes, %s", s.Volume, k.config.Dir)
	}
	for _, o := range s.Options {
		if !slices.Contains(options, o) {
			return fmt.Errorf("%q is no option of a server; there are %s", o, strings.Join(options, ", "))
		}
	}
	return nil
}

// serve starts the server of a mount, and returns when the server has joined its volume. files has
// the mount's descriptor, and the memory of the mount's last server if there was one.
func (k *Keeper) serve(spec Spec, files []*os.File) ([]*os.File, []Server, error) {
	if err := k.check(spec); err != nil || len(files) == 0 || len(files) > mostAtOnce {
		closeAll(files)
		if err == nil {
			err = fmt.Errorf("the call has %d descriptors, which is not the expected number", len(files))
		}
		return nil, nil, err
	}
	s := &server{spec: spec, id: unique(), mount: files[0]}
	if len(files) > 1 {
		s.memory = files[1]
	} else {
		fd, err := unix.MemfdCreate("stargatefs "+spec.Name, unix.MFD_CLOEXEC)
		if err != nil {
			closeAll(files)
			return nil, nil, fmt.Errorf("memory: %w", err)
		}
		s.memory = os.NewFile(uintptr(fd), "memory")
	}
	mine, err := copies(s.memory) // the server may end and close its descriptors
	if err == nil {
		err = k.add(s)
	}
	if err == nil {
		began := make(chan error, 1)
		go k.keep(s, began)
		err = <-began
	} else {
		closeAll([]*os.File{s.mount, s.memory})
	}
	if err != nil {
		closeAll(mine)
		return nil, nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return mine, []Server{s.seen()}, nil
}

func (k *Keeper) add(s *server) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.servers[s.spec.Name] != nil {
		return fmt.Errorf("volume %s has a server already", s.spec.Name)
	}
	k.servers[s.spec.Name] = s
	return nil
}

// keep runs the servers of one mount, one after another. It sends the result of the first start to
// began.
func (k *Keeper) keep(s *server, began chan<- error) {
	// The kernel kills a server when the thread that has started it ends. This thread stays
	// locked, so it ends with the goroutine.
	runtime.LockOSThread()
	defer k.remove(s)
	log := k.log.WithValues("volume", s.spec.Name)
	joined := false
	for {
		started := time.Now()
		err := k.config.Run(s.spec, s.mount, s.memory, func(pid int) { k.note(s, pid) }, func() {
			if !joined {
				joined = true
				began <- nil
			}
			log.Info("A server has joined the volume", "file", s.spec.Volume)
		})
		k.note(s, 0)
		switch {
		case !joined:
			if err == nil {
				err = errors.New("the mount has ended")
			}
			began <- err
			return
		case err == nil:
			log.Info("The mount has ended")
			return
		case !k.mayRestart(s, started):
			log.Error(err, "The servers of a mount end repeatedly: the keeper drops the mount, and its pods must be restarted")
			return
		}
		log.Info("A server has ended: the keeper starts another one", "reason", err.Error())
		if time.Since(started) < time.Second {
			time.Sleep(time.Second / 2)
		}
	}
}

func (k *Keeper) note(s *server, pid int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.pid = pid
}

func (k *Keeper) mayRestart(s *server, started time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.began = append(s.began, started)
	if len(s.began) > mostRestarts {
		s.began = s.began[1:]
		if time.Since(s.began[0]) < withinTime {
			return false
		}
	}
	s.restarts++
	return true
}

// remove removes a server and closes its descriptors. When the driver has also closed its
// descriptors, the kernel ends the mount's calls.
func (k *Keeper) remove(s *server) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.servers, s.spec.Name)
	closeAll([]*os.File{s.mount, s.memory})
}
