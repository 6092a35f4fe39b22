// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// last executes the last stage. It makes one layer for each COPY, and the image's configuration.
func (b *builder) last(ctx context.Context) (v1.Image, error) {
	s := b.recipe.stages[len(b.recipe.stages)-1]
	if s.base != "scratch" {
		return nil, fmt.Errorf("Dockerfile: the last stage begins from %s: only scratch is supported", s.base)
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	d := &built{dir: filepath.Join(b.work, "last"), workdir: "/"}
	config := v1.Config{Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
	var history []v1.History
	for i, st := range s.steps {
		entry := v1.History{Created: v1.Time{Time: b.epoch}, CreatedBy: st.text}
		if st.op != "copy" && st.op != "add" {
			entry.EmptyLayer = true
			if err := b.configure(&config, d, st); err != nil {
				return nil, err
			}
			history = append(history, entry)
			continue
		}
		packed, err := b.layerOf(ctx, st, d, filepath.Join(d.dir, fmt.Sprint(i)))
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: packed, History: entry}); err != nil {
			return nil, err
		}
		history = append(history, entry)
	}
	for inside := range b.also {
		return nil, fmt.Errorf("-also %s: the image has no such file", inside)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", "amd64"
	file.Created = v1.Time{Time: b.epoch}
	file.Config, file.History = config, history
	return mutate.ConfigFile(image, file)
}

// layerOf makes a layer from the result of COPY or ADD in an empty folder.
func (b *builder) layerOf(ctx context.Context, s step, d *built, dir string) (v1.Layer, error) {
	if s.op == "add" {
		return b.add(s, &d.vars)
	}
	if err := b.copyTo(ctx, s, &d.vars, dir, d.workdir); err != nil {
		return nil, err
	}
	if err := b.keep(dir); err != nil {
		return nil, err
	}
	return layer(dir, b.epoch)
}

// add makes a layer from an archive of a root, and keeps owners, modes and attributes.
func (b *builder) add(s step, vars *variables) (v1.Layer, error) {
	if len(s.flags) > 0 || len(s.args) != 2 || s.args[1] != "/" || !strings.HasSuffix(s.args[0], ".tar") {
		return nil, s.refuse("only ADD ARCHIVE.tar / is supported")
	}
	word, err := vars.expand(s, s.args[0])
	if err != nil {
		return nil, err
	}
	packed, err := tarball.LayerFromFile(filepath.Join(b.context, filepath.Join("/", word)),
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestSpeed))
	if err != nil {
		return nil, s.refuse("ADD %s: %v", word, err)
	}
	return packed, nil
}

// keep copies files of a layer to the places outside that -also names.
func (b *builder) keep(dir string) error {
	for inside, outside := range b.also {
		info, err := os.Lstat(filepath.Join(dir, inside))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := copyFile(filepath.Join(dir, inside), outside, info, 0); err != nil {
			return err
		}
		delete(b.also, inside)
	}
	return nil
}

// configure applies all instructions other than COPY to the image's configuration.
func (b *builder) configure(c *v1.Config, d *built, s step) error {
	var err error
	switch s.op {
	case "arg":
		err = d.vars.declare(s, b.args, b.global.values)
	case "env":
		err = setEnv(&d.vars, s, func(name, value string) {
			d.vars.set(name, value)
			c.Env = append(without(c.Env, name), name+"="+value)
		})
	case "label":
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		err = setEnv(&d.vars, s, func(name, value string) { c.Labels[name] = value })
	case "workdir":
		err = setWorkdir(d, s)
		c.WorkingDir = d.workdir
	case "user":
		c.User = s.args[0]
	case "entrypoint", "cmd":
		if !s.json {
			return s.refuse("%s without a shell in the image: write it as [\"PROGRAM\"]", strings.ToUpper(s.op))
		}
		if s.op == "cmd" {
			c.Cmd = s.args
		} else {
			c.Entrypoint = s.args
		}
	default:
		err = s.refuse("%s is not supported in an image from scratch", strings.ToUpper(s.op))
	}
	return err
}

func without(env []string, name string) []string {
	var kept []string
	for _, e := range env {
		if !strings.HasPrefix(e, name+"=") {
			kept = append(kept, e)
		}
	}
	return kept
}

// layer makes a layer from a folder.
func layer(dir string, when time.Time) (v1.Layer, error) {
	var out bytes.Buffer
	if err := pack(dir, &out, when); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(out.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// pack writes a folder as a tar: sorted by name, owned by root, with one time, so that the same
// files give the same bytes.
func pack(dir string, out io.Writer, when time.Time) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return packOne(w, path, name, e, when)
	})
	if err != nil {
		return err
	}
	return w.Close()
}

func packOne(w *tar.Writer, path, name string, e fs.DirEntry, when time.Time) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: when, Format: tar.FormatPAX}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, name+"/", 0o755
	case info.Mode()&fs.ModeSymlink != 0:
		h.Typeflag, h.Mode = tar.TypeSymlink, 0o777
		if h.Linkname, err = os.Readlink(path); err != nil {
			return err
		}
	default:
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
	}
	if err := w.WriteHeader(h); err != nil || h.Typeflag != tar.TypeReg {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// write makes the complete archive or none. It returns the image's digest and the archive's size.
func write(image v1.Image, o options) (v1.Hash, int64, error) {
	digest, err := image.Digest()
	if err != nil {
		return digest, 0, err
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return digest, 0, err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return digest, 0, err
	}
	_, tag, _ := strings.Cut(filepath.Base(o.reference), ":")
	names := map[string]string{"io.containerd.image.name": o.reference, "org.opencontainers.image.ref.name": tag}
	if err := path.AppendImage(image, layout.WithAnnotations(names), layout.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"})); err != nil {
		return digest, 0, err
	}
	if err := os.MkdirAll(filepath.Dir(o.archive), 0o755); err != nil {
		return digest, 0, err
	}
	if err := readable(dir); err != nil {
		return digest, 0, err
	}
	size, err := archive(dir, o.archive, o.epoch)
	return digest, size, err
}

// readable sets the same mode on all files of a layout, because layout.Write uses the umask.
func readable(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chmod(path, 0o644)
	})
}

// archive makes a tar of a folder's content. It writes the tar next to the target, then renames it
// to the target.
func archive(dir, target string, when time.Time) (int64, error) {
	f, err := os.CreateTemp(filepath.Dir(target), filepath.Base(target)+".*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := pack(dir, f, when); err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if err := f.Chmod(0o644); err != nil {
		return 0, err
	}
	if err := f.Close(); err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(f.Name(), target)
}
