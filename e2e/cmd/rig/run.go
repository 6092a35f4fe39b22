// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"stargate/e2e/internal/image"
	"stargate/e2e/internal/kernel"
	"stargate/e2e/internal/lab"
	"stargate/e2e/internal/proc"
	"stargate/e2e/internal/say"
	"stargate/e2e/internal/vm"
)

// run runs a script with guests.
func run(r rig, args []string) error {
	o, err := parseOptions(r, "run", "SCRIPT|-|-c TEXT [ARGUMENT]...", args)
	if err != nil {
		return err
	}
	if err := o.checkScript(); err != nil {
		return err
	}
	work := (*session).script
	if o.each != "" {
		work = (*session).eachScript
	}
	return r.withLab(o, work)
}

// session is one run.
type session struct {
	rig
	*options
	dir     string
	kernels []kernel.Kernel // the guests' kernels; with a node, the last one is the node's
	lab     *lab.Lab
	shared  *vm.Range
	fsck    string // the path of fsck.stargatefs if there is a volume, or empty

	mu      sync.Mutex
	aborted int // the exit status if the run was aborted, or 0
	main    *exec.Cmd
}

// withLab starts the guests of these options, calls work, and checks the result.
func (r rig) withLab(o *options, work func(*session) (int, error)) error {
	if err := proc.Adopt(); err != nil {
		return err
	}
	s := &session{rig: r, options: o}
	assets, err := s.prepare()
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "stargate-rig-"); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "pid"), []byte(fmt.Sprint(os.Getpid())), 0o644); err != nil {
		return err
	}
	stop := s.watch()
	code, err := s.inLab(assets, work)
	if s.lab != nil {
		s.lab.KillAll()
	}
	proc.KillChildren()
	stop()
	return s.close(code, err)
}

// prepare fills the caches, and compiles the module and the tools. It prints a description of the
// machine.
func (s *session) prepare() (*lab.Assets, error) {
	var releases []string
	for _, name := range s.options.kernels {
		k, err := s.rig.kernel(name)
		if err != nil {
			return nil, err
		}
		s.kernels = append(s.kernels, k)
		releases = append(releases, k.Release)
	}
	assets, err := lab.Prepare(s.cache, s.versions, s.kernels)
	if err != nil {
		return nil, err
	}
	if err := assets.PrepareDisks(s.packages); err != nil {
		return nil, err
	}
	if s.icount {
		assets.Accel = vm.Accel{Name: "tcg", ICount: true}
	}
	if s.nested {
		assets.Accel = assets.Accel.ForNode()
	}
	if s.node {
		if err := s.prepareNode(assets); err != nil {
			return nil, err
		}
		releases = append([]string{s.kernels[len(s.kernels)-1].Release + " (node)"}, releases...)
	}
	version, err := assets.QEMU.Version()
	if err != nil {
		return nil, err
	}
	say.Line("kernel %s, %s, QEMU %s", strings.Join(releases, ", "), assets.Accel, version)
	return assets, nil
}

// prepareNode fills the node's caches. It adds the node's kernel to the session's kernels, for
// which the rig compiles the module.
func (s *session) prepareNode(assets *lab.Assets) error {
	k, err := s.rig.kernel(s.nodeOn)
	if err != nil {
		return err
	}
	s.kernels = append(s.kernels, k)
	return assets.PrepareNode(k)
}

// inLab makes the range, the volume, the payload and the guests, and then calls work.
func (s *session) inLab(assets *lab.Assets, work func(*session) (int, error)) (int, error) {
	payload, err := s.payload()
	if err != nil {
		return 0, err
	}
	if s.shared, err = vm.NewRange(int64(s.size), s.pages, s.labels); err != nil {
		return 0, err
	}
	if free, err := vm.RangeRoom(); err == nil && free < int64(s.size) {
		say.Line("only %d MiB are free in /dev/shm: a guest that writes more to the range is killed", free>>20)
	}
	if !s.noMount {
		if err := s.format(); err != nil {
			return 0, err
		}
	}
	shares, err := s.makeShares()
	if err != nil {
		return 0, err
	}
	bells, err := s.startBells()
	if err != nil {
		return 0, err
	}
	guard := ""
	if !s.noModule && !s.noGuard && !(s.node && s.noMount) {
		guard = s.tool("stargatectl")
	}
	s.setLab(lab.New(assets, lab.Options{
		Guests: s.guests, CPUs: s.cpus, MemoryMiB: int(s.memory >> 20), Append: s.append, Payload: payload,
		Node: s.node, Forgets: s.zone == zoneDRAM, Format: s.format,
		Module: !s.noModule, Mount: !s.noMount, MountOptions: s.mountOpts.String(), Guard: guard,
		Shares: shares, Net: s.network(), Bells: bells, Kept: s.disk, Shared: s.each != "",
	}, s.shared, s.dir))
	listener, err := net.Listen("unix", socketPath(s.dir))
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	go s.lab.Serve(listener)
	if err := s.lab.StartAll(); err != nil {
		return 0, err
	}
	code, err := work(s)
	if err != nil || s.abortStatus() != 0 || s.each != "" { // the rig has checked each script separately
		return code, err
	}
	return code, s.judge()
}

// startBells starts the exchange of --bells. It returns the socket for the guests, or "". A node
// starts the exchange itself, because its own kernel is one of the systems.
func (s *session) startBells() (string, error) {
	switch {
	case !s.bells:
		return "", nil
	case s.node:
		return vm.NodeRun + "/bells.socket", nil
	}
	socket := filepath.Join(s.dir, "bells.socket")
	log, err := os.Create(filepath.Join(s.dir, "bells.log"))
	if err != nil {
		return "", err
	}
	defer log.Close()
	cmd := exec.Command(s.tool("stargatectl"), "bells", "--peers", fmt.Sprint(vm.BellPeers), socket)
	cmd.Stdout, cmd.Stderr = log, log
	if err := proc.Start(cmd, syscall.SIGKILL); err != nil {
		return "", fmt.Errorf("starting the exchange of doorbells: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for limit := time.After(30 * time.Second); ; {
		if _, err := os.Stat(socket); err == nil {
			return socket, nil
		}
		select {
		case err := <-ended:
			return "", fmt.Errorf("the exchange of doorbells has ended (%v): see %s", err, log.Name())
		case <-limit:
			return "", fmt.Errorf("the exchange of doorbells is not ready after 30 s: see %s", log.Name())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// network returns the network of --net, which only this run uses, or the network of --tap.
func (s *session) network() *vm.Net {
	if !s.net && s.tap == "" {
		return nil
	}
	return &vm.Net{Run: s.dir, Tap: s.tap}
}

// sharesDir returns the folder of the shares. Only processes of this run see its content.
func (s *session) sharesDir() string { return filepath.Join(s.dir, "shares") }

// makeShares makes the folders of --share.
func (s *session) makeShares() ([]vm.Share, error) {
	if len(s.options.shares) == 0 {
		return nil, nil
	}
	if err := os.Mkdir(s.sharesDir(), 0o755); err != nil {
		return nil, err
	}
	if err := vm.ShareMemory(s.sharesDir()); err != nil {
		return nil, err
	}
	var shares []vm.Share
	for _, kind := range s.options.shares {
		share := vm.Share{Kind: kind, Dir: filepath.Join(s.sharesDir(), kind)}
		if err := share.MakeFolder(); err != nil {
			return nil, err
		}
		say.Line("share %s: %s", kind, share.Settings())
		shares = append(shares, share)
	}
	return shares, nil
}

// unsound is the error of a run whose script succeeded: errors in a kernel log or in the volume.
type unsound []string

func (u unsound) Error() string { return strings.Join(u, "\n") }

func (s *session) judge() error {
	wrong := s.lab.Finish(s.fsck)
	if len(wrong) == 0 {
		return nil
	}
	return unsound(wrong)
}

// close removes the run's folder, except logs, and returns the rig's status.
func (s *session) close(code int, err error) error {
	if aborted := s.abortStatus(); aborted != 0 {
		code, err = aborted, nil // the abort has caused err
	}
	var wrong unsound
	switch {
	case errors.As(err, &wrong):
		for _, line := range wrong {
			say.Line("FAILED: %s", line)
		}
		if code == 0 {
			code = statusUnsound
		}
	case err != nil:
		say.Line("%v", err)
		code = statusRig
	}
	if code == 0 && !s.keepLogs {
		return os.RemoveAll(s.dir)
	}
	// The logs stay.
	for _, name := range []string{"pid", "socket", "payload.tar", "shares", "bells.socket"} {
		if e := os.Remove(filepath.Join(s.dir, name)); e != nil && !errors.Is(e, os.ErrNotExist) {
			say.Line("%v", e)
		}
	}
	say.Line("the logs are in %s", s.dir)
	if code == 0 {
		return nil
	}
	return status(code)
}

// watch aborts the run at its limit, or at a signal.
func (s *session) watch() (stop func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	timer := time.NewTimer(time.Duration(s.timeout))
	done := make(chan struct{})
	go func() {
		select {
		case got := <-signals:
			say.Line("ended by %v", got)
			s.abort(128+int(got.(syscall.Signal)), done)
		case <-timer.C:
			say.Line("no end after %s, the limit of --timeout; waiting:", s.timeout.String())
			if l := s.currentLab(); l != nil {
				fmt.Fprint(os.Stderr, l.Where())
			}
			s.abort(statusTimeout, done)
		case <-done:
		}
	}()
	return func() { close(done); timer.Stop() }
}

// abort ends the script and the guests, again and again, until the run has ended.
func (s *session) abort(code int, done <-chan struct{}) {
	s.mu.Lock()
	s.aborted = code
	main := s.main
	s.mu.Unlock()
	sig := syscall.SIGTERM
	for {
		if main != nil {
			// An error only means that the script has already ended.
			_ = syscall.Kill(-main.Process.Pid, sig)
		}
		if l := s.currentLab(); l != nil {
			l.KillAll()
		}
		select {
		case <-done:
			return
		case <-time.After(time.Second):
			sig = syscall.SIGKILL
		}
	}
}

func (s *session) abortStatus() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aborted
}

func (s *session) setLab(l *lab.Lab) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lab = l
}

func (s *session) currentLab() *lab.Lab {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lab
}

// payload packs the files for the guests: the module, the tools, and the files of --copy-in.
func (s *session) payload() (string, error) {
	payload := image.Payload{}
	if !s.noModule {
		if err := s.build(payload); err != nil {
			return "", err
		}
	}
	copies, err := s.copies()
	if err != nil {
		return "", err
	}
	for inside, outside := range copies {
		payload[inside] = outside
	}
	archive := filepath.Join(s.dir, "payload.tar")
	return archive, payload.Write(archive)
}

// scriptFile returns the path of the script, and the script's arguments. If the script has no path,
// scriptFile stores it in a file.
func (s *session) scriptFile() (string, []string, error) {
	path := filepath.Join(s.dir, "script")
	if s.text != "" {
		return path, s.options.script, os.WriteFile(path, []byte(s.text+"\n"), 0o644)
	}
	name, args := s.options.script[0], s.options.script[1:]
	if name != "-" {
		return name, args, nil
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return "", nil, fmt.Errorf("reading the script from standard input: %w", err)
	}
	return path, args, os.WriteFile(path, text, 0o644)
}
