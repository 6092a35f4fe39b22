// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"stargate/csi-driver/internal/dataset/fill"
)

// S3Config names objects of a store.
type S3Config struct {
	Endpoint string // URL
	Region   string
	Bucket   string
	Prefix   string // the files' names are the keys without it
	List     string // name of the object with the list of files (parseList); empty: none
}

// s3 reads objects of a store with the protocol of S3.
type s3 struct {
	S3Config
	of minio.Core
}

// S3 returns a source of all objects with a prefix.
func S3(c S3Config, a Access) (fill.Source, error) {
	u, err := checkURL(c.Endpoint)
	if err != nil {
		return nil, err
	}
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return nil, fmt.Errorf("endpoint of %q: must be a URL without a path", u.Host)
	}
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	access := a.Credentials.word(KeyAccess)
	if access != "" {
		if err := a.Credentials.mayGo(u); err != nil {
			return nil, err
		}
	}
	keys := credentials.NewStaticV4(access, a.Credentials.word(KeySecret), a.Credentials.word(KeySession))
	of, err := minio.NewCore(u.Host, &minio.Options{
		Creds: keys, Secure: u.Scheme == "https", Transport: bounded{client.Transport}, Region: c.Region, MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("endpoint of %q: %w", u.Host, err)
	}
	return &s3{S3Config: c, of: *of}, nil
}

// mostAnswer limits the size of an answer that is not a range of an object: a page of a listing, a
// list of files, or an error. The client of S3 decodes such an answer as a whole.
const mostAnswer = mostList + 1

// bounded is a transport that limits such answers.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil && (r.Header.Get("Range") == "" || res.StatusCode != http.StatusPartialContent) {
		res.Body = &answer{ReadCloser: res.Body, left: mostAnswer}
	}
	return res, err
}

// answer is a body that fails when it has more than left bytes.
type answer struct {
	io.ReadCloser
	left int64
}

func (a *answer) Read(b []byte) (int, error) {
	n, err := a.ReadCloser.Read(b)
	if a.left -= int64(n); a.left < 0 {
		return 0, fill.Final(fmt.Errorf("the store's answer has more than %d bytes", mostAnswer))
	}
	return n, err
}

// Files lists the objects. If there is a list, only its files count.
func (s *s3) Files(ctx context.Context) ([]fill.File, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing if it is not read to its end
	var files []fill.File
	for o := range s.of.Client.ListObjects(ctx, s.Bucket, minio.ListObjectsOptions{Prefix: s.Prefix, Recursive: true, UseV1: false}) {
		if o.Err != nil {
			return nil, fmt.Errorf("bucket %s: %w", s.Bucket, s.told(o.Err))
		}
		name := strings.TrimPrefix(o.Key, s.Prefix)
		if o.Size == 0 && (name == "" || strings.HasSuffix(name, "/")) {
			continue // the mark of a folder
		}
		if len(files) >= fill.MostFiles {
			return nil, fill.Final(fmt.Errorf("bucket %s has more than %d objects with this prefix", s.Bucket, fill.MostFiles))
		}
		files = append(files, fill.File{Name: name, Size: o.Size, Tag: o.ETag})
	}
	if s.List == "" {
		return files, nil
	}
	return s.listed(ctx, files)
}

// listed returns the files of the list, with their digests.
func (s *s3) listed(ctx context.Context, objects []fill.File) ([]fill.File, error) {
	body, _, _, err := s.of.GetObject(ctx, s.Bucket, s.Prefix+s.List, minio.GetObjectOptions{})
	if err != nil {
		return nil, fmt.Errorf("the list of files %s: %w", s.List, s.told(err))
	}
	defer body.Close()
	files, err := parseList(body)
	if err != nil {
		return nil, err
	}
	by := map[string]fill.File{}
	for _, o := range objects {
		by[o.Name] = o
	}
	for i := range files {
		o, ok := by[files[i].Name]
		if !ok {
			return nil, fill.Final(fmt.Errorf("bucket %s has no object for file %s of the list", s.Bucket, files[i].Name))
		}
		files[i].Size, files[i].Tag = o.Size, o.Tag
	}
	return files, nil
}

// Open reads a range of an object.
func (s *s3) Open(ctx context.Context, f fill.File, from, n int64) (io.ReadCloser, error) {
	var o minio.GetObjectOptions
	if err := o.SetRange(from, from+n-1); err != nil {
		return nil, fill.Final(err)
	}
	if f.Tag != "" {
		if err := o.SetMatchETag(f.Tag); err != nil {
			return nil, fill.Final(err)
		}
	}
	body, _, headers, err := s.of.GetObject(ctx, s.Bucket, s.Prefix+f.Name, o)
	if err != nil {
		return nil, s.told(err)
	}
	if got, asked := headers.Get("Content-Range"), spanOf(from, from+n-1, f.Size); got != asked {
		body.Close()
		return nil, fmt.Errorf("the store sends the range %.64q instead of %q", got, asked)
	}
	return limited{io.LimitReader(body, n), body}, nil
}

// told returns the store's error in a few words. The store writes the message, so it is cut.
func (s *s3) told(err error) error {
	var r minio.ErrorResponse
	if !errors.As(err, &r) || r.StatusCode == 0 {
		return plain(err)
	}
	said := fmt.Errorf("the store answers %d %.64q", r.StatusCode, r.Code)
	if r.StatusCode == http.StatusPreconditionFailed {
		return fill.Final(errors.New("the store has another version of the object now"))
	}
	if r.StatusCode >= 400 && r.StatusCode < 500 && r.StatusCode != http.StatusRequestTimeout && r.StatusCode != http.StatusTooManyRequests {
		return fill.Final(said)
	}
	return said
}
