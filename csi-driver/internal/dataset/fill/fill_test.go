// SPDX-License-Identifier: Apache-2.0

package fill

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const kib = int64(1) << 10

// stock is a source in memory. before is called before each range is sent, and may make it fail.
type stock struct {
	content map[string][]byte
	before  func(f File, from, n int64) (send int64, err error)
	sent    atomic.Int64
}

func newStock(sizes map[string]int64) *stock {
	s := &stock{content: map[string][]byte{}}
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range slices.Sorted(maps.Keys(sizes)) { // the same content in each process
		b := make([]byte, sizes[name])
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		s.content[name] = b
	}
	return s
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (s *stock) Files(context.Context) ([]File, error) {
	var files []File
	for name, b := range s.content {
		files = append(files, File{Name: name, Size: int64(len(b)), Digest: sumOf(b)})
	}
	return files, nil
}

// counted counts the bytes that were read, and fails at its end.
type counted struct {
	io.Reader
	of  *atomic.Int64
	err error
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.of.Add(int64(n))
	if errors.Is(err, io.EOF) && c.err != nil {
		err = c.err
	}
	return n, err
}

func (c counted) Close() error { return nil }

func (s *stock) Open(_ context.Context, f File, from, n int64) (io.ReadCloser, error) {
	send, err := n, error(nil)
	if s.before != nil {
		if send, err = s.before(f, from, n); err != nil && send == 0 {
			return nil, err
		}
	}
	return counted{bytes.NewReader(s.content[f.Name][from : from+send]), &s.sent, err}, nil
}

// place is a directory that is filled.
type place struct {
	t    *testing.T
	dir  string
	root *os.Root
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir()}
	p.open()
	return p
}

func (p *place) open() {
	p.t.Helper()
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { root.Close() })
	p.root = root
}

func planOf(t *testing.T, s Source, tree string) Plan {
	t.Helper()
	files, err := s.Files(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(files, tree, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// small makes ranges and delays small.
func (p *place) small(s Source, plan Plan) Config {
	return Config{Root: p.root, Source: s, Plan: plan, Chunk: 64 * kib, Gap: time.Millisecond, Stall: 5 * time.Second}
}

// left lists the files of a place.
func (p *place) left() []string {
	p.t.Helper()
	var names []string
	err := filepath.WalkDir(p.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, strings.TrimPrefix(path, p.dir+"/"))
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return names
}

// whole checks that exactly the source's files are there.
func (p *place) whole(s *stock) {
	p.t.Helper()
	for name, want := range s.content {
		if got, err := os.ReadFile(filepath.Join(p.dir, name)); err != nil || !bytes.Equal(got, want) {
			p.t.Errorf("%s: %d bytes, %v; should have %d", name, len(got), err, len(want))
		}
	}
	if left := p.left(); len(left) != len(s.content) {
		p.t.Errorf("it has %q", left)
	}
}

var several = map[string]int64{"a.bin": 1<<20 + 77, "dir/b.bin": 64 * kib, "dir/deep/c.bin": 64*kib - 1, "empty": 0, "one": 1}

// A run fills all files, verifies them, and seals them. Nothing else is left.
func TestRun(t *testing.T) {
	s, p := newStock(several), newPlace(t)
	config := p.small(s, planOf(t, s, ""))
	var names []string
	config.Seal = func(_ context.Context, some []string) error { names = append(names, some...); return nil }
	config.Progress = &Progress{}
	if err := Run(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	p.whole(s)
	slices.Sort(names)
	if len(names) != len(several) || names[0] != "a.bin" {
		t.Errorf("sealed: %q", names)
	}
	if st := config.Progress.State(); st.Done != st.Total || st.Percent() != 100 || s.sent.Load() != st.Total {
		t.Errorf("progress %v, sent %d", st, s.sent.Load())
	}
	if st, err := os.Stat(filepath.Join(p.dir, "a.bin")); err != nil || st.Mode().Perm() != 0o444 {
		t.Errorf("mode: %v, %v", st.Mode(), err)
	}
}

// A run continues after a source that failed: the ranges that are complete are not read again.
func TestContinues(t *testing.T) {
	s, p := newStock(map[string]int64{"a": 1 << 20, "b": 1 << 20}), newPlace(t)
	gone := errors.New("the server is gone")
	var left atomic.Int64
	left.Store(20)
	s.before = func(_ File, _, n int64) (int64, error) {
		if left.Add(-1) < 0 {
			return 0, gone
		}
		return n, nil
	}
	config := p.small(s, planOf(t, s, ""))
	config.Workers = 1 // no range is in progress when another one fails
	if err := Run(context.Background(), config); !errors.Is(err, gone) {
		t.Fatalf("%v", err)
	}
	s.before = nil
	if err := Run(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	if got := s.sent.Load(); got != 2<<20 {
		t.Errorf("%d bytes in all; ranges were read twice", got)
	}
	p.whole(s)
}

// A range whose request ends early continues behind its last byte.
func TestShortAnswers(t *testing.T) {
	s, p := newStock(map[string]int64{"a": 300 * kib}), newPlace(t)
	s.before = func(_ File, _, n int64) (int64, error) { return max(1, n/2), io.ErrUnexpectedEOF }
	config := p.small(s, planOf(t, s, ""))
	if err := Run(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	if got := s.sent.Load(); got != 300*kib {
		t.Errorf("%d bytes were read", got)
	}
	p.whole(s)
}

// A source that stalls is interrupted, and the run fails with a sentence.
func TestStall(t *testing.T) {
	s, p := newStock(map[string]int64{"a": 100}), newPlace(t)
	config := p.small(stalled{s}, planOf(t, s, ""))
	config.Stall, config.Tries = 20*time.Millisecond, 2
	err := Run(context.Background(), config)
	if err == nil || !strings.Contains(err.Error(), "less than 65536 bytes in 20ms") {
		t.Errorf("%v", err)
	}
}

type stalled struct{ *stock }

func (s stalled) Open(ctx context.Context, f File, _, _ int64) (io.ReadCloser, error) {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	return r, nil
}

// A file with a wrong digest never gets its name, and is read again by the next run.
func TestWrongDigest(t *testing.T) {
	s, p := newStock(map[string]int64{"a": 200 * kib, "b": 10}), newPlace(t)
	plan := planOf(t, s, "")
	s.content["a"][100*kib] ^= 1
	config := p.small(s, plan)
	err := Run(context.Background(), config)
	if err == nil || !strings.Contains(err.Error(), "file a has the digest sha256:") {
		t.Fatalf("%v", err)
	}
	if slices.Contains(p.left(), "a") {
		t.Error("the file has its name")
	}
	s.content["a"][100*kib] ^= 1
	if err := Run(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	p.whole(s)
}

// A power cut may take bytes of an interrupted run. The digest shows this, and the file is read
// again from its beginning.
func TestLostBytes(t *testing.T) {
	s, p := newStock(map[string]int64{"a": 1 << 20}), newPlace(t)
	var left atomic.Int64
	left.Store(8)
	s.before = func(_ File, _, n int64) (int64, error) {
		if left.Add(-1) < 0 {
			return 0, errors.New("gone")
		}
		return n, nil
	}
	config := p.small(s, planOf(t, s, ""))
	if err := Run(context.Background(), config); err == nil {
		t.Fatal("it does not fail")
	}
	data, ranges := partNames(0)
	had, err := p.root.ReadFile(ranges)
	first := bytes.IndexByte(had, 1)
	if err != nil || first < 0 {
		t.Fatalf("no range is complete: %v, %v", had, err)
	}
	f, err := p.root.OpenFile(data, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 100), int64(first)*64*kib); err != nil {
		t.Fatal(err)
	}
	f.Close()
	s.before = nil
	if err := Run(context.Background(), config); err == nil || !strings.Contains(err.Error(), "read again from its beginning") {
		t.Fatalf("%v", err)
	}
	if err := Run(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	p.whole(s)
}

// With a digest of the list of all files, the files need none of their own. A wrong one leaves
// nothing.
func TestTree(t *testing.T) {
	s, p := newStock(several), newPlace(t)
	files, _ := s.Files(context.Background())
	tree := TreeDigest(files)
	bare := noDigests{s}
	if err := Run(context.Background(), p.small(bare, planOf(t, bare, tree))); err != nil {
		t.Fatal(err)
	}
	p.whole(s)
	wrong := newPlace(t)
	err := Run(context.Background(), wrong.small(bare, planOf(t, bare, strings.Repeat("0", 64))))
	if err == nil || !strings.Contains(err.Error(), "the list of all files has the digest sha256:"+tree) {
		t.Errorf("%v", err)
	}
	if left := wrong.left(); len(left) > 0 {
		t.Errorf("it has %q", left)
	}
}

type noDigests struct{ *stock }

func (s noDigests) Files(ctx context.Context) ([]File, error) {
	files, err := s.stock.Files(ctx)
	for i := range files {
		files[i].Digest = ""
	}
	return files, err
}

// Another plan begins anew, and nothing of the earlier one is left. The caller's record stays.
func TestAnotherPlan(t *testing.T) {
	s, p := newStock(map[string]int64{"a": 1 << 20, "old": 5}), newPlace(t)
	s.before = func(f File, from, n int64) (int64, error) {
		if f.Name == "a" && from > 0 {
			return 0, errors.New("gone")
		}
		return n, nil
	}
	first := p.small(s, planOf(t, s, ""))
	first.Workers = 1
	if err := Run(context.Background(), first); err == nil {
		t.Fatal("it does not fail")
	}
	if err := p.root.WriteFile(RecordFile, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := newStock(map[string]int64{"a": 100})
	slices.Reverse(other.content["a"])
	if err := Run(context.Background(), p.small(other, planOf(t, other, ""))); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(p.dir, "a")); err != nil || !bytes.Equal(got, other.content["a"]) {
		t.Errorf("a has %d bytes, %v", len(got), err)
	}
	if left := p.left(); len(left) != 2 || !slices.Contains(left, RecordFile) {
		t.Errorf("it has %q", left)
	}
}

// A hostile source cannot name a path outside, a link's way out, or a file of the driver.
func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "a/b": true, "..a": true, "a..b/c": true, "-x": true, "%2e%2e/x": true,
		"": false, ".": false, "..": false, "../a": false, "a/../b": false, "a/..": false, "/a": false, "a//b": false, "./a": false, "a/": false,
		"a\x00b": false, "a\nb": false, "\x1b[2J": false, "a\xff": false, ".filling/x": false, ".stargate/region": false, ".stargate-dataset.json": false,
		strings.Repeat("a", 256): false, strings.Repeat("a/", 40) + "a": false, strings.Repeat("a/", 600): false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A link in the volume does not lead a file outside: nothing is written through it.
func TestLinks(t *testing.T) {
	s, p := newStock(map[string]int64{"dir/a": 10}), newPlace(t)
	outside := t.TempDir()
	config := p.small(s, planOf(t, s, ""))
	config.Source = linking{s, p.dir, outside}
	if err := Run(context.Background(), config); err == nil {
		t.Error("it does not fail")
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("a file was written through a link: %v", left)
	}
}

// linking makes a link in the volume before it sends a byte.
type linking struct {
	*stock
	dir, to string
}

func (s linking) Open(ctx context.Context, f File, from, n int64) (io.ReadCloser, error) {
	_ = os.Symlink(s.to, filepath.Join(s.dir, "dir"))
	return s.stock.Open(ctx, f, from, n)
}

func TestPlans(t *testing.T) {
	digest := strings.Repeat("0", 64)
	for _, c := range []struct {
		what  string
		files []File
		words string
	}{
		{"none", nil, "has 0 files"},
		{"a path outside", []File{{Name: "../x", Digest: digest}}, "not a plain path"},
		{"two of a name", []File{{Name: "a", Digest: digest}, {Name: "a", Digest: digest}}, "two files"},
		{"a file that is a directory", []File{{Name: "a", Digest: digest}, {Name: "a/b", Digest: digest}}, "as a file and as a directory"},
		{"too many bytes", []File{{Name: "a", Size: 600, Digest: digest}, {Name: "b", Size: 401, Digest: digest}}, "more than 1000 bytes"},
		{"an overflow", []File{{Name: "a", Size: 600, Digest: digest}, {Name: "b", Size: 1<<63 - 1, Digest: digest}}, "more than 1000 bytes"},
		{"a negative size", []File{{Name: "a", Size: -1, Digest: digest}}, "more than 1000 bytes"},
		{"no digest", []File{{Name: "a"}}, "has no digest"},
		{"good", []File{{Name: "a", Size: 600, Digest: digest}, {Name: "b/c", Size: 400, Digest: digest}}, ""},
	} {
		_, err := NewPlan(c.files, "", 1000)
		if (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

// Places and tags of files do not make another version, but names, sizes and digests do.
func TestVersion(t *testing.T) {
	plan := func(f File) string {
		p, err := NewPlan([]File{f}, "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		return p.Version()
	}
	f := File{Name: "a", Size: 1, Digest: strings.Repeat("0", 64)}
	same, other := f, f
	same.Tag, same.Whole, same.At = "t", true, "elsewhere"
	other.Digest = strings.Repeat("1", 64)
	if plan(f) != plan(same) || plan(f) == plan(other) {
		t.Error("versions")
	}
}

// With this variable, the test program fills a directory until it is killed.
const envFiller = "SG_FILL_TEST"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envFiller); dir != "" {
		os.Exit(beFiller(dir))
	}
	os.Exit(m.Run())
}

// killed is the source of the process that is killed, and of its successor.
func killed() *stock { return newStock(map[string]int64{"a": 4 << 20, "b/c": 1 << 20}) }

func beFiller(dir string) int {
	s := killed()
	s.before = func(_ File, _, n int64) (int64, error) { time.Sleep(5 * time.Millisecond); return n, nil }
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 1
	}
	files, _ := s.Files(context.Background())
	plan, err := NewPlan(files, "", 1<<40)
	if err != nil {
		return 1
	}
	config := Config{Root: root, Source: s, Plan: plan, Chunk: 64 * kib, Workers: 2, Progress: &Progress{}}
	go func() {
		for range time.Tick(time.Millisecond) {
			fmt.Println(config.Progress.State().Done)
		}
	}()
	if err := Run(context.Background(), config); err != nil {
		return 1
	}
	return 0
}

// A driver that is killed at any moment leaves what the next one continues.
func TestKill(t *testing.T) {
	for _, at := range []int64{0, 1 << 20, 3 << 20, 4500 * kib} {
		t.Run(strconv.FormatInt(at, 10), func(t *testing.T) {
			p := newPlace(t)
			done := killAt(t, p.dir, at)
			s := killed()
			if err := Run(context.Background(), p.small(s, planOf(t, s, ""))); err != nil {
				t.Fatal(err)
			}
			p.whole(s)
			// Each of the two readers may have had one range in progress, and one
			// that was not counted yet.
			if sent, most := s.sent.Load(), 5<<20-done+4*64*kib; sent > most {
				t.Errorf("killed at %d: %d bytes were read again, at most %d should be", done, sent, most)
			}
		})
	}
}

// killAt runs the test program as a filler, and kills it when it has got a number of bytes.
func killAt(t *testing.T, dir string, at int64) (done int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envFiller+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for done = -1; done < at; {
		if _, err := fmt.Fscan(out, &done); err != nil {
			t.Fatalf("the filler has ended at %d: %v", done, err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return done
}

// The progress counts bytes of several readers, and never exceeds the total.
func TestProgress(t *testing.T) {
	var p Progress
	p.Begin(1000)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 50 {
				p.add(1)
			}
		})
	}
	all.Wait()
	s := p.State()
	if s.Done != 500 || s.Percent() != 50 || s.Rate <= 0 {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(s.String(), "50 % of 1000 bytes") {
		t.Error(s.String())
	}
}

// A file that the volume cannot have does not take the driver's own memory.
func TestSizeWithoutRoom(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.Mkdir(stateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := openPart(root, File{Name: "f", Size: 1 << 50}, 0, Chunk)
	runtime.ReadMemStats(&after)
	if err == nil {
		p.close()
		t.Skip("this file system has room for a file of 1 PiB")
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("the driver has taken %d bytes", took)
	}
}
