// SPDX-License-Identifier: Apache-2.0

package fill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// get reads one range of a file into its place. If a request ends early, the next request begins
// behind the last byte that came. A server that sends a few bytes and ends each time makes
// progress, so only requests without a byte count as failed.
func (r *run) get(ctx context.Context, j job) error {
	from, n := j.of.span(j.i)
	gap, vain := r.Gap, 0
	for {
		got, err := r.once(ctx, j.of, from, n)
		if !j.of.of.Whole {
			from, n = from+got, n-got
		}
		switch {
		case err == nil:
			return j.of.got(j.i)
		case ctx.Err() != nil:
			return ctx.Err()
		case isFinal(err):
			return fmt.Errorf("file %s: %w", j.of.of.Name, err)
		}
		if j.of.of.Whole {
			r.Progress.add(-got)
		} else if got > 0 {
			gap, vain = r.Gap, 0
		}
		if vain++; vain >= r.Tries {
			return fmt.Errorf("file %s: %w", j.of.of.Name, err)
		}
		select {
		case <-time.After(gap):
		case <-ctx.Done():
			return ctx.Err()
		}
		gap = min(2*gap, mostGap)
	}
}

// once makes one request, and returns the number of bytes that it has stored.
func (r *run) once(ctx context.Context, p *part, from, n int64) (got int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(r.Stall, func() { cancel(fmt.Errorf("the source sent less than %d bytes in %s", leastStep, r.Stall)) })
	defer silent.Stop()
	from0, step := from, 0
	body, err := r.Source.Open(ctx, p.of, from, n)
	if err != nil {
		return 0, cause(ctx, err)
	}
	defer body.Close()
	buf := r.buffers.Get().(*[]byte)
	defer r.buffers.Put(buf)
	for n > 0 {
		b := (*buf)[:min(int64(len(*buf)), n)]
		k, rerr := readSome(body, b, func(n int) {
			if step += n; step >= leastStep {
				step = 0
				silent.Reset(r.Stall)
			}
		})
		if k > 0 {
			if _, err := p.data.WriteAt(b[:k], from); err != nil {
				return from - from0, Final(err)
			}
			from, n = from+int64(k), n-int64(k)
			r.Progress.add(int64(k))
		}
		switch {
		case n == 0:
			return from - from0, nil
		case errors.Is(rerr, io.EOF) || errors.Is(rerr, io.ErrUnexpectedEOF):
			return from - from0, fmt.Errorf("the source ended %d bytes early", n)
		case rerr != nil:
			return from - from0, cause(ctx, rerr)
		}
	}
	return from - from0, nil
}

// readSome reads until the buffer is full, because large stores keep the file's memory in large
// pieces.
func readSome(from io.Reader, b []byte, each func(n int)) (n int, err error) {
	for n < len(b) && err == nil {
		var k int
		k, err = from.Read(b[n:])
		n += k
		if k > 0 {
			each(k)
		}
	}
	return n, err
}

// cause returns the reason why a request was interrupted, if it was.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	return err
}
