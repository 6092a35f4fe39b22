// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/errkind"
)

// Client is the driver's side of the connection to the keeper. It holds the descriptors of all
// mounts, and passes them to the next keeper.
type Client struct {
	socket string
	log    klog.Logger

	mu       sync.Mutex
	held     map[string]*held
	restarts map[string]int // restarts of servers by a new keeper, by volume
	patience time.Duration  // how long a keeper may refuse a mount
	up       bool
	servers  []Server
}

// held is a mount, with the driver's descriptors of it.
type held struct {
	spec          Spec
	id, instance  string // identities of the mount's server and of its keeper
	mount, memory *os.File
	since         time.Time
	dropped       bool      // the driver has closed the descriptors
	adopting      bool      // a call that passes the mount to a keeper is in progress
	refused       time.Time // when the keeper began to refuse the mount; zero: it does not refuse
}

const (
	followEvery = time.Second
	askLimit    = 10 * time.Second
	// serveLimit is long, because a server that joins may have to recover a large volume.
	serveLimit = 2 * time.Minute
	goneLimit  = 30 * time.Second
	// A keeper may refuse a mount for a while, because the mount's last server still ends, or
	// because the node lacks memory.
	refusedLimit = 5 * time.Minute
)

// NewClient returns a Client for the keeper at a socket (unix:///...). Run then follows the
// keeper's state.
func NewClient(socket string, log klog.Logger) *Client {
	return &Client{socket: strings.TrimPrefix(socket, "unix://"), log: log, held: map[string]*held{}, restarts: map[string]int{}, patience: refusedLimit}
}

// refusal is an error in the keeper's answer. All other errors mean that there was no answer.
type refusal struct{ reply }

func (r refusal) Error() string { return r.reply.Error }

func (c *Client) call(ctx context.Context, limit time.Duration, r request, files ...*os.File) (reply, []*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.socket)
	if err != nil {
		return reply{}, nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	r.Protocol = Protocol
	uc := conn.(*net.UnixConn)
	var a reply
	if err := send(uc, r, files...); err != nil {
		return a, nil, err
	}
	got, err := receive(uc, &a)
	if err == nil && a.Error != "" {
		err = refusal{a}
	}
	if err != nil {
		closeAll(got)
		got = nil
	}
	return a, got, err
}

// Serve makes the keeper start a server for a mount. It returns when the server has joined the
// volume. The caller keeps its own descriptor.
func (c *Client) Serve(ctx context.Context, name, volume string, options []string, mount *os.File) error {
	mine, err := copies(mount)
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "volume %s", name)
	}
	h := &held{spec: Spec{name, volume, options}, mount: mine[0]}
	if err := c.give(ctx, h, mount); err != nil {
		closeAll(mine)
		return c.explained(name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if was := c.held[name]; was != nil {
		was.close()
	}
	c.held[name] = h
	return nil
}

// give passes a mount to the keeper. The mount h must not be in the table, or must be marked as
// adopting.
func (c *Client) give(ctx context.Context, h *held, files ...*os.File) error {
	a, got, err := c.call(ctx, serveLimit, request{Call: callServe, Spec: h.spec}, files...)
	if err != nil {
		return err
	}
	if len(got) != 1 || len(a.Servers) != 1 {
		closeAll(got)
		return errors.New("the keeper's answer has an unexpected number of descriptors or servers")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.dropped {
		closeAll(got)
		return errors.New("the mount has ended meanwhile")
	}
	if h.memory != nil {
		h.memory.Close()
	}
	h.memory, h.id, h.instance, h.since = got[0], a.Servers[0].ID, a.Instance, time.Now()
	return nil
}

// explained returns the error for a failed call that starts a server.
func (c *Client) explained(name string, err error) error {
	var r refusal
	if !errors.As(err, &r) {
		return errkind.Wrap(errkind.NoAnswer, err, "volume %s: the keeper of mounts on this node does not answer at %s", name, c.socket)
	}
	if r.Protocol != Protocol {
		return errkind.New(errkind.InUse, "volume %s: the keeper of mounts on this node is of release %s, which cannot start new mounts for this driver: delete the keeper's pod on this node; mounted volumes continue to work", name, r.Release)
	}
	return errkind.Wrap(errkind.Internal, err, "volume %s: no server", name)
}

func (h *held) close() { closeAll([]*os.File{h.mount, h.memory}) }

// Follow compares the driver's mounts with the keeper's servers. It gets missing descriptors from
// the keeper, closes the descriptors of mounts that have ended, and passes the mounts to a new
// keeper.
func (c *Client) Follow(ctx context.Context) error {
	began := time.Now()
	a, _, err := c.call(ctx, askLimit, request{Call: callList})
	c.mu.Lock()
	c.up = err == nil
	if err != nil {
		c.mu.Unlock()
		return err
	}
	c.servers = a.Servers
	served := map[string]Server{}
	var missing []string
	for _, s := range a.Servers {
		served[s.Name] = s
		if h := c.held[s.Name]; h == nil || h.id != s.ID && !h.adopting && h.since.Before(began) {
			missing = append(missing, s.Name)
		}
	}
	for name, h := range c.held {
		if _, ok := served[name]; ok || h.adopting || !h.since.Before(began) {
			continue
		}
		if h.instance == a.Instance {
			c.dropLocked(h)
			continue
		}
		h.adopting = true
		go c.adopt(ctx, h)
	}
	c.mu.Unlock()
	for _, name := range missing {
		c.take(ctx, name)
	}
	return nil
}

func (c *Client) dropLocked(h *held) {
	if c.held[h.spec.Name] == h {
		delete(c.held, h.spec.Name)
	}
	h.dropped = true
	h.close()
}

// take gets the descriptors of a server that this driver has not started.
func (c *Client) take(ctx context.Context, name string) {
	a, got, err := c.call(ctx, askLimit, request{Call: callHold, Spec: Spec{Name: name}})
	if err != nil || len(got) != 2 || len(a.Servers) != 1 {
		closeAll(got) // the server may have ended meanwhile
		return
	}
	s := a.Servers[0]
	c.mu.Lock()
	defer c.mu.Unlock()
	if was := c.held[name]; was != nil {
		if was.id == s.ID {
			closeAll(got)
			return
		}
		was.close()
	}
	c.held[name] = &held{spec: s.Spec, id: s.ID, instance: a.Instance, mount: got[0], memory: got[1], since: time.Now()}
}

// adopt passes a mount to a keeper that has not started the mount's server.
func (c *Client) adopt(ctx context.Context, h *held) {
	files, err := copies(h.mount, h.memory)
	if err == nil {
		err = c.give(ctx, h, files...)
	}
	closeAll(files)
	c.mu.Lock()
	defer c.mu.Unlock()
	h.adopting = false
	log := c.log.WithValues("volume", h.spec.Name)
	var r refusal
	switch {
	case err == nil:
		h.refused = time.Time{}
		c.restarts[h.spec.Name]++
		log.Info("A new keeper has started the server of a mount again")
	case errors.As(err, &r) && r.Protocol != Protocol:
		h.refused = time.Time{}
		// A driver of the keeper's release may succeed, or the next keeper may accept the
		// mount.
		log.V(4).Info("The keeper does not support this driver's calls", "release", r.Release, "reason", r.Error())
	case errors.As(err, &r) && h.refused.IsZero():
		h.refused = time.Now()
		log.Info("The keeper refuses a mount of its predecessor: the driver retries", "reason", r.Error())
	case errors.As(err, &r):
		if time.Since(h.refused) >= c.patience {
			log.Error(err, "The keeper refuses a mount of its predecessor: the driver drops the mount, and its pods must be restarted")
			c.dropLocked(h)
		}
	default:
		h.refused = time.Time{}
		log.V(4).Info("The keeper does not answer", "reason", err.Error())
	}
}

// Run calls Follow repeatedly until ctx is done.
func (c *Client) Run(ctx context.Context) {
	up := true
	for {
		err := c.Follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if (err == nil) != up {
			if up = err == nil; up {
				c.log.Info("The keeper of mounts answers again")
			} else {
				c.log.Error(err, "The keeper of mounts does not answer: pods that use its mounts wait for the next one")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(followEvery):
		}
	}
}

// Serving reports whether the mount of a volume has a server, or will soon have one again. It
// returns an error if the keeper does not answer, because calls on the mount would then wait for
// the next keeper.
func (c *Client) Serving(ctx context.Context, name string) (bool, error) {
	if err := c.Follow(ctx); err != nil {
		return false, errkind.Wrap(errkind.NoAnswer, err, "volume %s: the keeper of mounts on this node does not answer at %s", name, c.socket)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The keeper may not have passed the descriptors of a server yet: the mount has a server
	// nevertheless.
	listed := slices.ContainsFunc(c.servers, func(s Server) bool { return s.Name == name })
	return c.held[name] != nil || listed, nil
}

// Gone waits until the server of an unmounted volume has left the volume.
func (c *Client) Gone(ctx context.Context, name string) error {
	for end := time.Now().Add(goneLimit); ; {
		err := c.Follow(ctx)
		c.mu.Lock()
		h := c.held[name]
		if h != nil && err != nil {
			// No process can use the mount, so no keeper has to serve it.
			c.dropLocked(h)
			h = nil
		}
		c.mu.Unlock()
		if h == nil {
			return nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return errkind.New(errkind.Busy, "volume %s: the server of its last mount has not ended yet", name)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Status is the last known state of the keeper.
type Status struct {
	Up       bool
	Held     int            // mounts
	Restarts map[string]int // restarts of the mounts' servers, by volume
}

// Status returns the last known state, for metrics.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Up: c.up, Held: len(c.held), Restarts: map[string]int{}}
	for name := range c.held {
		s.Restarts[name] = c.restarts[name]
	}
	for _, of := range c.servers {
		if c.held[of.Name] != nil {
			s.Restarts[of.Name] += of.Restarts
		}
	}
	maps.DeleteFunc(c.restarts, func(name string, _ int) bool { return c.held[name] == nil })
	return s
}

// Check returns an error unless the keeper answers.
func Check(ctx context.Context, socket string) error {
	_, _, err := NewClient(socket, klog.FromContext(ctx)).call(ctx, askLimit, request{Call: callList})
	return err
}

// Device opens /dev/fuse.
func Device() (*os.File, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil && slices.Contains([]error{unix.ENOENT, unix.ENXIO, unix.ENODEV}, err) {
		return nil, errkind.Wrap(errkind.Internal, err, "/dev/fuse: load the module fuse on this node (modprobe fuse), then delete the driver's pod of this node")
	}
	if err != nil {
		return nil, errkind.Wrap(errkind.Internal, err, "/dev/fuse")
	}
	return os.NewFile(uintptr(fd), "/dev/fuse"), nil
}
