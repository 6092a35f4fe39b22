// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"stargate/csi-driver/internal/dataset/fill"
)

// doer sends a request: an HTTP client, or the client of a registry.
type doer interface {
	Do(r *http.Request) (*http.Response, error)
}

// ranges reads files by HTTP, in parts.
type ranges struct {
	do doer
	// sign adds credentials to a request; nil: none.
	sign func(r *http.Request)
}

func (h ranges) send(ctx context.Context, u *url.URL, span string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("a URL cannot be used")
	}
	r.Header.Set("Accept-Encoding", "identity")
	r.Header.Set("User-Agent", "stargate-csi")
	if span != "" {
		r.Header.Set("Range", span)
	}
	if h.sign != nil {
		h.sign(r)
	}
	res, err := h.do.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.Host, plain(err))
	}
	if e := res.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		res.Body.Close()
		return nil, fill.Final(fmt.Errorf("%s sends the content encoded (%.32q)", u.Host, e))
	}
	return res, nil
}

// refusal returns the error for a status that is no success.
func refusal(host string, status int) error {
	err := fmt.Errorf("%s answers %d %s", host, status, http.StatusText(status))
	switch {
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests:
		return err
	case status >= 400 && status < 500:
		return fill.Final(err)
	}
	return err
}

// tagOf returns the name of the file's version. Servers do not compare weak tags byte by byte.
func tagOf(h http.Header) string {
	tag := h.Get("ETag")
	if strings.HasPrefix(tag, "W/") || len(tag) > 256 {
		return ""
	}
	return tag
}

// look asks for the first byte of a file, and so learns its size, its version, and whether the
// server sends parts. Many servers refuse HEAD.
func (h ranges) look(ctx context.Context, u *url.URL, f *fill.File) error {
	res, err := h.send(ctx, u, "bytes=0-0")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	f.Tag = tagOf(res.Header)
	switch res.StatusCode {
	case http.StatusPartialContent:
		_, _, size, ok := contentRange(res.Header.Get("Content-Range"))
		if !ok {
			return fill.Final(fmt.Errorf("%s does not tell the file's size", u.Host))
		}
		f.Size = size
		return nil
	case http.StatusRequestedRangeNotSatisfiable:
		if res.Header.Get("Content-Range") == "bytes */0" {
			f.Size = 0
			return nil
		}
		return refusal(u.Host, res.StatusCode)
	case http.StatusOK:
		if res.ContentLength < 0 {
			return fill.Final(fmt.Errorf("%s does not tell the file's size", u.Host))
		}
		f.Size, f.Whole = res.ContentLength, res.ContentLength > 0
		return nil
	}
	return refusal(u.Host, res.StatusCode)
}

// contentRange parses a header like `bytes 0-99/1000`.
func contentRange(text string) (first, last, size int64, ok bool) {
	n, err := fmt.Sscanf(text, "bytes %d-%d/%d", &first, &last, &size)
	return first, last, size, err == nil && n == 3 && first >= 0 && last >= first && size > last && text == spanOf(first, last, size)
}

func spanOf(first, last, size int64) string { return fmt.Sprintf("bytes %d-%d/%d", first, last, size) }

// open reads a range of a file. It checks that the server sends this range of this version.
func (h ranges) open(ctx context.Context, u *url.URL, f fill.File, from, n int64) (io.ReadCloser, error) {
	span := ""
	if !f.Whole {
		span = fmt.Sprintf("bytes=%d-%d", from, from+n-1)
	}
	res, err := h.send(ctx, u, span)
	if err != nil {
		return nil, err
	}
	if err := checkRange(u.Host, res, f, from, n); err != nil {
		res.Body.Close()
		return nil, err
	}
	return limited{io.LimitReader(res.Body, n), res.Body}, nil
}

type limited struct {
	io.Reader
	io.Closer
}

func checkRange(host string, res *http.Response, f fill.File, from, n int64) error {
	want := http.StatusPartialContent
	if f.Whole {
		want = http.StatusOK
	}
	switch {
	case res.StatusCode == http.StatusOK && !f.Whole:
		return fmt.Errorf("%s sends the whole file instead of a part", host)
	case res.StatusCode != want:
		return refusal(host, res.StatusCode)
	case f.Tag != "" && !slices.Contains([]string{"", f.Tag}, tagOf(res.Header)):
		return fill.Final(fmt.Errorf("%s has another version of the file now", host))
	case res.ContentLength >= 0 && res.ContentLength != n:
		return fmt.Errorf("%s sends %d bytes instead of %d", host, res.ContentLength, n)
	}
	if f.Whole {
		return nil
	}
	if got, asked := res.Header.Get("Content-Range"), spanOf(from, from+n-1, f.Size); got != asked {
		return fmt.Errorf("%s sends the range %.64q instead of %q", host, got, asked)
	}
	return nil
}

// lookAll looks at several files at a time.
func lookAll(ctx context.Context, files []fill.File, one func(ctx context.Context, f *fill.File) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fill.Workers)
	for i := range files {
		g.Go(func() error {
			if err := one(ctx, &files[i]); err != nil {
				return fmt.Errorf("file %s: %w", files[i].Name, err)
			}
			return nil
		})
	}
	return g.Wait()
}
