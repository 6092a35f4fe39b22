// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

const whole = `ARG BASE
FROM ${BASE} AS make
WORKDIR /src
COPY a.txt sub/ ./
COPY tree tree
ARG VERSION=1
ENV GREETING="hello ${VERSION}"
RUN mkdir -p out/bin && cp -a tree out/share && echo "$GREETING" >out/greeting && \
    install -m 755 a.txt out/bin/a && ln -s a out/bin/b && ls -A >out/given
FROM make AS never
RUN exit 1
FROM scratch
ARG VERSION=1
COPY --from=make /src/out/ /
COPY --chmod=0700 a.txt /opt/
ENV PATH=/bin MODE=x
LABEL version="v${VERSION}"
USER 7
WORKDIR /opt
ENTRYPOINT ["/bin/a", "b"]
CMD ["c"]
`

// dir makes the files of a context; a name that ends in / becomes a folder.
func dir(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func given(t *testing.T, dockerfile string) options {
	t.Helper()
	context := dir(t, map[string]string{
		"Dockerfile": dockerfile, ".dockerignore": "**/*.o\nsecret\n", "a.txt": "a", "sub/s.txt": "s", "tree/t.txt": "t", "tree/t.o": "o",
		"secret/key": "k", "tree/deep/d.txt": "d",
	})
	return options{
		context: context, reference: "localhost/x:1", archive: filepath.Join(t.TempDir(), "x.tar"), args: values{"BASE": "none"},
		epoch: time.Unix(1700000000, 0).UTC(),
	}
}

// content reads an archive as an importer does.
func content(t *testing.T, archive string) (v1.Image, v1.Descriptor, map[string]*tar.Header, map[string]string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	root := t.TempDir()
	each(t, f, func(h *tar.Header, text string) {
		path := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	index, err := layout.ImageIndexFromPath(root)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) != 1 {
		t.Fatalf("%v, %v", m, err)
	}
	image, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	headers, texts := map[string]*tar.Header{}, map[string]string{}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		each(t, r, func(h *tar.Header, text string) { headers[h.Name], texts[h.Name] = h, text })
	}
	return image, m.Manifests[0], headers, texts
}

func each(t *testing.T, r io.Reader, f func(*tar.Header, string)) {
	t.Helper()
	for a := tar.NewReader(r); ; {
		h, err := a.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(a)
		if err != nil {
			t.Fatal(err)
		}
		f(h, string(text))
	}
}

func TestBuild(t *testing.T) {
	o := given(t, whole)
	o.args["VERSION"] = "2"
	o.also = values{"/greeting": filepath.Join(t.TempDir(), "kept")}
	kept := o.also["/greeting"]
	if _, _, err := build(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	image, descriptor, headers, texts := content(t, o.archive)
	if name := descriptor.Annotations["io.containerd.image.name"]; name != "localhost/x:1" {
		t.Errorf("name %q", name)
	}
	names := strings.Join(slices.Sorted(maps.Keys(headers)), " ")
	if want := "bin/ bin/a bin/b given greeting opt/ opt/a.txt share/ share/deep/ share/deep/d.txt share/t.txt"; names != want {
		t.Errorf("files: %s; should be: %s", names, want)
	}
	for name, want := range map[string]string{"greeting": "hello 2\n", "bin/a": "a", "given": "a.txt\nout\ns.txt\ntree\n", "opt/a.txt": "a"} {
		if texts[name] != want {
			t.Errorf("%s: %q, should be %q", name, texts[name], want)
		}
	}
	if headers["bin/a"].Mode != 0o755 || headers["opt/a.txt"].Mode != 0o700 || headers["bin/b"].Linkname != "a" {
		t.Errorf("%+v %+v %+v", headers["bin/a"], headers["opt/a.txt"], headers["bin/b"])
	}
	for name, h := range headers {
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(o.epoch) || h.Uname != "" {
			t.Errorf("%s: %+v", name, h)
		}
	}
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.Config.User, c.Config.WorkingDir, c.Config.Labels["version"], strings.Join(c.Config.Entrypoint, ","), strings.Join(c.Config.Cmd, ","), strings.Join(c.Config.Env, ","), c.OS, c.Architecture}
	if want := "7 /opt v2 /bin/a,b c PATH=/bin,MODE=x linux amd64"; strings.Join(got, " ") != want {
		t.Errorf("configuration %s; should be %s", got, want)
	}
	if text, err := os.ReadFile(kept); string(text) != "hello 2\n" {
		t.Errorf("-also: %q, %v", text, err)
	}
}

// The same recipe gives the same bytes, and another recipe gives other bytes: the Dockerfile
// defines the result.
func TestSame(t *testing.T) {
	umask := syscall.Umask(0o022)
	defer syscall.Umask(umask)
	bytesBy := func(dockerfile string, mask int) []byte {
		o := given(t, dockerfile)
		defer syscall.Umask(syscall.Umask(mask))
		if _, _, err := build(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(o.archive)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	bytesOf := func(dockerfile string) []byte { return bytesBy(dockerfile, 0o022) }
	first := bytesOf(whole)
	if !bytes.Equal(first, bytesOf(whole)) {
		t.Error("two builds of the same recipe differ")
	}
	const plain = "ARG BASE\nFROM scratch\nCOPY tree /tree\n" // the umask decides the modes of the context's files
	if !bytes.Equal(bytesOf(plain), bytesBy(plain, 0o077)) {
		t.Error("an archive built with another umask differs")
	}
	for _, change := range [][2]string{{"USER 7", "USER 8"}, {"COPY tree tree", "COPY tree/deep tree"}, {"hello", "hallo"}, {"0700", "0755"}} {
		changed := strings.Replace(whole, change[0], change[1], 1)
		if changed == whole || bytes.Equal(first, bytesOf(changed)) {
			t.Errorf("%s in place of %s changes nothing", change[1], change[0])
		}
	}
}

// A root that ADD reads from an archive keeps its owners, modes and attributes.
func TestAdd(t *testing.T) {
	o := given(t, "FROM scratch\nADD r.tar /\n")
	delete(o.args, "BASE")
	var root bytes.Buffer
	w := tar.NewWriter(&root)
	for _, h := range []tar.Header{
		{Name: "./home/q/", Typeflag: tar.TypeDir, Mode: 0o700, Uid: 107, Gid: 107},
		{Name: "./bin/p", Typeflag: tar.TypeReg, Mode: 0o4755, Size: 1, PAXRecords: map[string]string{"SCHILY.xattr.user.x": "y"}},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		w.Write(make([]byte, h.Size))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.context, "r.tar"), root.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := build(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	_, _, headers, _ := content(t, o.archive)
	home, p := headers["./home/q/"], headers["./bin/p"]
	if home == nil || home.Uid != 107 || home.Mode != 0o700 || p == nil || p.Mode != 0o4755 || p.PAXRecords["SCHILY.xattr.user.x"] != "y" {
		t.Errorf("in the image: %+v, %+v", home, p)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ dockerfile, words string }{
		{"", "file with no instructions"},
		{"RUN true\nFROM scratch\n", "line 1: RUN before the first FROM"},
		{"FROM scratch\nRUN true\n", "line 2: RUN is not supported in an image from scratch"},
		{"FROM debian\n", "only scratch"},
		{"FROM --platform=x scratch\n", "--platform"},
		{"FROM scratch\nCOPY none /\n", "COPY none"},
		{"FROM scratch\nCOPY secret* /\n", "patterns"},
		{"FROM scratch\nCOPY --from=other a /\n", "no stage has that name"},
		{"FROM scratch\nCOPY --chown=1 a.txt /\n", "--chown"},
		{"FROM scratch\nCOPY --chmod=u+x a.txt /\n", "octal"},
		{"FROM scratch\nADD a.txt /\n", "ADD ARCHIVE.tar /"},
		{"FROM scratch\nADD r.tar /opt/\n", "ADD ARCHIVE.tar /"},
		{"FROM scratch\nADD ../r.tar /\n", "ADD ../r.tar"},
		{"FROM scratch\nENTRYPOINT a\n", "without a shell"},
		{"FROM scratch\nHEALTHCHECK NONE\n", "HEALTHCHECK is not supported"},
		{"FROM scratch\nCOPY ${THAT} /\n", "no value for THAT"},
		{"FROM d AS a\nRUN true\nFROM scratch\nCOPY --from=a / /\n", "before WORKDIR"},
		{"FROM d AS a\nWORKDIR /s\nRUN --mount=type=cache true\nFROM scratch\nCOPY --from=a / /\n", "RUN COMMAND"},
		{"FROM d AS a\nWORKDIR /s\nRUN [\"true\"]\nFROM scratch\nCOPY --from=a / /\n", "RUN COMMAND"},
		{"FROM d AS a\nWORKDIR /s\nRUN exit 3\nFROM scratch\nCOPY --from=a / /\n", "line 3: RUN exit 3: exit status 3"},
		{"FROM d AS a\nFROM a AS b\nFROM scratch\nCOPY --from=b / /\n", "stage b begins from a"},
		{"FROM d AS a\nUSER 3\nFROM scratch\nCOPY --from=a / /\n", "USER is not supported"},
	} {
		o := given(t, c.dockerfile)
		delete(o.args, "BASE")
		_, _, err := build(context.Background(), o)
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%q: %v; should say %q", c.dockerfile, err, c.words)
		}
		if _, err := os.Stat(o.archive); err == nil {
			t.Errorf("%q: the builder refused it, but wrote an archive", c.dockerfile)
		}
	}
	o := given(t, whole)
	o.args["VERSOIN"] = "2"
	if _, _, err := build(context.Background(), o); err == nil || !strings.Contains(err.Error(), "no ARG VERSOIN") {
		t.Errorf("a value for an ARG that the Dockerfile does not have: %v", err)
	}
	o = given(t, whole)
	o.also = values{"/none": "x"}
	if _, _, err := build(context.Background(), o); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("-also with a file that the image does not have: %v", err)
	}
}
