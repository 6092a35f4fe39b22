// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"

	"stargate/csi-driver/internal/dataset/fill"
)

// HTTPFile is one file with its URL.
type HTTPFile struct{ URL, Name, Digest string }

// http1 reads files from web servers.
type http1 struct {
	ranges
	files []fill.File
	urls  map[string]*url.URL // by the files' names
	list  *url.URL            // nil: the files are given
}

// HTTP returns a source of files with given URLs.
func HTTP(files []HTTPFile, a Access) (fill.Source, error) {
	s := &http1{urls: map[string]*url.URL{}}
	var all []*url.URL
	for _, f := range files {
		u, err := checkURL(f.URL)
		if err != nil {
			return nil, err
		}
		s.files, s.urls[f.Name] = append(s.files, fill.File{Name: f.Name, Digest: f.Digest}), u
		all = append(all, u)
	}
	return s, s.connect(a, all...)
}

// HTTPList returns a source of the files in a list (parseList). Their URLs are relative to that of
// the list.
func HTTPList(list string, a Access) (fill.Source, error) {
	u, err := checkURL(list)
	if err != nil {
		return nil, err
	}
	s := &http1{list: u}
	return s, s.connect(a, u)
}

// connect makes the client. It refuses to send credentials that others could read on the way, and
// to send them to a host that the Secret does not name.
func (s *http1) connect(a Access, all ...*url.URL) error {
	token, user, password := a.Credentials.word(KeyToken), a.Credentials.word(KeyUser), a.Credentials.word(KeyPassword)
	switch {
	case token != "":
		s.sign = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	case user != "":
		s.sign = func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	for _, u := range all {
		if s.sign == nil {
			break
		}
		if u.Scheme != "https" {
			return errors.New("the data set has credentials and a URL with http://: use https://")
		}
		if err := a.Credentials.mayGo(u); err != nil {
			return err
		}
	}
	c, err := a.client()
	s.do = c
	return err
}

// Files looks at each file.
func (s *http1) Files(ctx context.Context) ([]fill.File, error) {
	files := slices.Clone(s.files)
	if s.list != nil {
		var err error
		if files, err = s.listed(ctx); err != nil {
			return nil, err
		}
	}
	return files, lookAll(ctx, files, func(ctx context.Context, f *fill.File) error {
		u, err := s.at(*f)
		if err != nil {
			return err
		}
		return s.look(ctx, u, f)
	})
}

func (s *http1) listed(ctx context.Context) ([]fill.File, error) {
	res, err := s.send(ctx, s.list, "")
	if err != nil {
		return nil, fmt.Errorf("the list of files: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the list of files: %w", refusal(s.list.Host, res.StatusCode))
	}
	return parseList(res.Body)
}

// at returns the URL of a file.
func (s *http1) at(f fill.File) (*url.URL, error) {
	if s.list == nil {
		if u, ok := s.urls[f.Name]; ok {
			return u, nil
		}
		return nil, fill.Final(errors.New("it has no URL"))
	}
	if err := fill.CheckName(f.Name); err != nil {
		return nil, fill.Final(err)
	}
	return &url.URL{Scheme: s.list.Scheme, Host: s.list.Host, Path: path.Join("/", path.Dir(s.list.Path), f.Name)}, nil
}

// Open reads a range of a file.
func (s *http1) Open(ctx context.Context, f fill.File, from, n int64) (io.ReadCloser, error) {
	u, err := s.at(f)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, u, f, from, n)
}
