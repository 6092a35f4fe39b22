// SPDX-License-Identifier: Apache-2.0

package fill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Sizes of a run. Each reader and each verifier has one buffer, so that a run needs about 16 MiB of
// memory, however large its files are.
const (
	Workers  = 8
	Chunk    = int64(16) << 20
	bufBytes = 1 << 20
)

// Limits of a request.
const (
	Stall    = 30 * time.Second // the longest time without leastStep bytes
	Tries    = 5                // requests for one range that bring no byte, in a row
	firstGap = 200 * time.Millisecond
	mostGap  = 10 * time.Second
	sealed   = 256 // files that one program seals
	// A source that sends fewer bytes within Stall would keep the node from other fills.
	leastStep = 64 << 10
)

// stateDir has the files that are not complete, and the plan for which they are.
const (
	stateDir = ".filling"
	planFile = stateDir + "/plan.json"
)

// Config describes a run.
type Config struct {
	Root   *os.Root // the directory of the files
	Source Source
	Plan   Plan
	// Seal makes files final; nil: the files are not sealed.
	Seal func(ctx context.Context, names []string) error
	// Progress counts the bytes.
	Progress *Progress

	Workers int
	Chunk   int64
	Stall   time.Duration
	Tries   int
	Gap     time.Duration // the time before the second try, which doubles each time
}

func (c Config) complete() Config {
	if c.Workers == 0 {
		c.Workers = Workers
	}
	if c.Chunk == 0 {
		c.Chunk = Chunk
	}
	if c.Stall == 0 {
		c.Stall = Stall
	}
	if c.Tries == 0 {
		c.Tries = Tries
	}
	if c.Gap == 0 {
		c.Gap = firstGap
	}
	if c.Progress == nil {
		c.Progress = &Progress{}
	}
	return c
}

// run is one call of Run.
type run struct {
	Config
	buffers sync.Pool

	mu   sync.Mutex
	sums map[string]string // digests of verified files
}

// Run fills the directory. When it returns without an error, all files are complete, verified, and
// sealed. After an error or a kill, the next Run of the same plan continues. A Run with another
// plan begins anew.
func Run(ctx context.Context, config Config) error {
	r := &run{Config: config.complete(), sums: map[string]string{}}
	r.buffers.New = func() any { b := make([]byte, bufBytes); return &b }
	r.Progress.Begin(r.Plan.Bytes)
	resumed, err := r.begin()
	if err != nil {
		return fmt.Errorf("the data set's volume: %w", err)
	}
	if err := r.all(ctx); err != nil {
		return err
	}
	if err := r.tree(resumed); err != nil {
		return err
	}
	return r.end(ctx)
}

// begin creates the directory of the state, unless an earlier run has left one for the same plan.
func (r *run) begin() (resumed bool, err error) {
	want, err := json.Marshal(r.Plan)
	if err != nil {
		return false, err
	}
	had, err := r.Root.ReadFile(planFile)
	if err == nil && string(had) == string(want) {
		return true, nil
	}
	if err := r.clear(); err != nil {
		return false, err
	}
	if err := r.Root.Mkdir(stateDir, 0o700); err != nil {
		return false, err
	}
	return false, WriteFile(r.Root, planFile, want)
}

// clear removes all files, sealed ones too, except the caller's record.
func (r *run) clear() error {
	dir, err := r.Root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == RecordFile {
			continue
		}
		if err := r.Root.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes a file as a whole: a crash leaves the old content or the new one.
func WriteFile(root *os.Root, name string, text []byte) error {
	temporary := name + ".new"
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return root.Rename(temporary, name)
}

// job is a range that a reader must get.
type job struct {
	of *part
	i  int
}

// all fills and verifies all files. Readers take ranges in the order of the files. A verifier
// follows the readers of its file, so that the file is verified soon after its last byte. The
// number of verifiers limits the number of open files.
func (r *run) all(ctx context.Context) error {
	jobs, parts := make(chan job), make(chan *part)
	g, ctx := errgroup.WithContext(ctx)
	for range r.Workers {
		g.Go(func() error {
			for j := range jobs {
				if err := r.get(ctx, j); err != nil {
					j.of.fail(err)
					return err
				}
			}
			return nil
		})
		g.Go(func() error {
			for p := range parts {
				if err := r.finish(ctx, p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(parts)
		defer close(jobs)
		for i, f := range r.Plan.Files {
			if err := r.produce(ctx, i, f, jobs, parts); err != nil {
				return err
			}
		}
		return nil
	})
	return g.Wait()
}

// produce hands out one file. The verifier gets the file last, and closes it. So if the run ends
// before, produce must close the file; the readers may still use it, and get an error.
func (r *run) produce(ctx context.Context, i int, f File, jobs chan<- job, parts chan<- *part) error {
	done, err := r.done(ctx, f)
	if done || err != nil {
		return err
	}
	p, err := openPart(r.Root, f, i, r.Chunk)
	if err != nil {
		return fmt.Errorf("file %s: %w", f.Name, err)
	}
	for i := range p.have {
		if p.has(i) {
			_, n := p.span(i)
			r.Progress.add(n)
			continue
		}
		select {
		case jobs <- job{p, i}:
		case <-ctx.Done():
			p.close()
			return ctx.Err()
		}
	}
	select {
	case parts <- p:
		return nil
	case <-ctx.Done():
		p.close()
		return ctx.Err()
	}
}

// done reports whether an earlier run has completed a file. A file gets its name only after it was
// verified.
func (r *run) done(ctx context.Context, f File) (bool, error) {
	st, err := r.Root.Lstat(f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("file %s: %w", f.Name, err)
	}
	if !st.Mode().IsRegular() || st.Size() != f.Size {
		return false, fmt.Errorf("file %s: something else has its name in the volume", f.Name)
	}
	sum := f.Digest
	if r.Plan.Tree != "" {
		if sum, err = r.sumOf(ctx, f); err != nil {
			return false, err
		}
	}
	r.keep(f, sum)
	r.Progress.add(f.Size)
	return true, nil
}

func (r *run) sumOf(ctx context.Context, f File) (string, error) {
	file, err := r.Root.Open(f.Name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	buf := r.buffers.Get().(*[]byte)
	defer r.buffers.Put(buf)
	for at := int64(0); at < f.Size && ctx.Err() == nil; {
		b := (*buf)[:min(int64(len(*buf)), f.Size-at)]
		n, err := file.ReadAt(b, at)
		if err != nil && n < len(b) {
			return "", fmt.Errorf("file %s: %w", f.Name, err)
		}
		h.Write(b)
		at += int64(n)
	}
	return hex.EncodeToString(h.Sum(nil)), ctx.Err()
}

func (r *run) keep(f File, sum string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sums[f.Name] = sum
}

// finish verifies a file while its readers fill it, and gives it its name.
func (r *run) finish(ctx context.Context, p *part) error {
	defer p.close()
	sum, err := r.sum(ctx, p)
	if err != nil {
		return err
	}
	if want := p.of.Digest; want != "" && sum != want {
		if err := p.drop(r.Root); err != nil {
			return fmt.Errorf("file %s: %w", p.of.Name, err)
		}
		return wrong(p, sum, want)
	}
	r.keep(p.of, sum)
	if err := errors.Join(p.data.Chmod(0o444), p.data.Sync()); err != nil {
		return fmt.Errorf("file %s: %w", p.of.Name, err)
	}
	if err := r.Root.MkdirAll(path.Dir(p.of.Name), 0o755); err != nil {
		return fmt.Errorf("file %s: %w", p.of.Name, err)
	}
	data, ranges := partNames(p.index)
	if err := r.Root.Rename(data, p.of.Name); err != nil {
		return fmt.Errorf("file %s: %w", p.of.Name, err)
	}
	return gone(r.Root.Remove(ranges))
}

// wrong is the error for a wrong digest. After a power cut, the file may have lost bytes of an
// earlier run. Only a file that one run has read from its beginning shows that the source is wrong.
func wrong(p *part, sum, want string) error {
	err := fmt.Errorf("file %s has the digest sha256:%s, and should have sha256:%s", p.of.Name, sum, want)
	if p.resumed {
		return fmt.Errorf("%w; it is read again from its beginning", err)
	}
	return Final(err)
}

// sum computes the digest of the bytes that are in the file, not of those that the source sent.
func (r *run) sum(ctx context.Context, p *part) (string, error) {
	h := sha256.New()
	buf := r.buffers.Get().(*[]byte)
	defer r.buffers.Put(buf)
	for i := range p.have {
		if err := p.wait(ctx, i); err != nil {
			return "", err
		}
		from, n := p.span(i)
		for n > 0 {
			b := (*buf)[:min(int64(len(*buf)), n)]
			if got, err := p.data.ReadAt(b, from); got < len(b) {
				return "", fmt.Errorf("file %s: %w", p.of.Name, err)
			}
			h.Write(b)
			from, n = from+int64(len(b)), n-int64(len(b))
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// tree verifies the digest of the list of all files.
func (r *run) tree(resumed bool) error {
	if r.Plan.Tree == "" {
		return nil
	}
	all := slices.Clone(r.Plan.Files)
	for i := range all {
		all[i].Digest = r.sums[all[i].Name]
	}
	got := TreeDigest(all)
	if got == r.Plan.Tree {
		return nil
	}
	if err := r.clear(); err != nil {
		return fmt.Errorf("the data set's volume: %w", err)
	}
	err := fmt.Errorf("the list of all files has the digest sha256:%s, and should have sha256:%s", got, r.Plan.Tree)
	if resumed {
		return fmt.Errorf("%w; all files are read again", err)
	}
	return Final(err)
}

// end seals the files, and removes the state.
func (r *run) end(ctx context.Context) error {
	if r.Seal != nil {
		for some := range slices.Chunk(r.Plan.Files, sealed) {
			var names []string
			for _, f := range some {
				names = append(names, f.Name)
			}
			if err := r.Seal(ctx, names); err != nil {
				return fmt.Errorf("seal: %w", err)
			}
		}
	}
	return r.Root.RemoveAll(stateDir)
}
