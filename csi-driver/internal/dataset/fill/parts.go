// SPDX-License-Identifier: Apache-2.0

package fill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// part is a file that is being filled. It has a name in the directory of the state, and next to it
// a map with one byte for each range that is complete. The map outlives the driver. After a power
// cut it may name a range whose bytes are lost; the digest shows this.
type part struct {
	of      File
	index   int
	chunk   int64
	data    *os.File
	ranges  *os.File
	resumed bool // some ranges are from an earlier run

	mu   sync.Mutex
	more *sync.Cond
	have []bool
	err  error // the file will not be completed
}

func partNames(index int) (data, ranges string) {
	return fmt.Sprintf("%s/%d.part", stateDir, index), fmt.Sprintf("%s/%d.ranges", stateDir, index)
}

// openPart opens the file of an earlier run, or creates one.
func openPart(root *os.Root, f File, index int, chunk int64) (*part, error) {
	if f.Whole {
		chunk = max(f.Size, 1)
	}
	p := &part{of: f, index: index, chunk: chunk}
	p.more = sync.NewCond(&p.mu)
	data, ranges := partNames(index)
	var err error
	if p.data, err = root.OpenFile(data, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if p.ranges, err = root.OpenFile(ranges, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		p.data.Close()
		return nil, err
	}
	if err := p.load(); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// load allocates the file's memory, and reads the map. So a full volume shows at once, and the
// memory is contiguous. The map takes memory of the driver only if the volume has room for it all.
func (p *part) load() error {
	if err := p.allocate(); err != nil {
		return err
	}
	n := (p.of.Size + p.chunk - 1) / p.chunk
	p.have = make([]bool, n)
	had := make([]byte, n)
	got, err := p.ranges.ReadAt(had, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for i := range got {
		p.have[i] = had[i] == 1
		p.resumed = p.resumed || p.have[i]
	}
	return nil
}

func (p *part) allocate() error {
	if p.of.Size == 0 {
		return nil
	}
	err := unix.Fallocate(int(p.data.Fd()), 0, 0, p.of.Size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = p.data.Truncate(p.of.Size)
	}
	return err
}

// span returns the place of a range.
func (p *part) span(i int) (from, n int64) {
	from = int64(i) * p.chunk
	return from, min(p.chunk, p.of.Size-from)
}

func (p *part) has(i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have[i]
}

// got records that a range is complete.
func (p *part) got(i int) error {
	if _, err := p.ranges.WriteAt([]byte{1}, int64(i)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.have[i] = true
	p.more.Broadcast()
	return nil
}

// fail ends all waits for the file's ranges.
func (p *part) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.more.Broadcast()
}

// wait waits until a range is complete.
func (p *part) wait(ctx context.Context, i int) error {
	stop := context.AfterFunc(ctx, func() { p.fail(ctx.Err()) })
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.have[i] && p.err == nil {
		p.more.Wait()
	}
	if p.have[i] {
		return nil
	}
	return p.err
}

func (p *part) close() {
	p.data.Close()
	p.ranges.Close()
}

// drop removes a file, so that the next run begins anew.
func (p *part) drop(root *os.Root) error {
	data, ranges := partNames(p.index)
	return errors.Join(gone(root.Remove(ranges)), gone(root.Remove(data)))
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
