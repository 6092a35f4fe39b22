// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stargate/csi-driver/internal/dataset/fill"
)

const (
	host  = "127.0.0.1"
	token = "s3cret-t0ken"
)

// allowed lets a test reach its own servers.
var allowed = Access{Hosts: []string{host}}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// bytesOf returns n bytes that do not repeat soon.
func bytesOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + i>>16)
	}
	return b
}

// files serves files, with a tag for each, and ranges.
type files map[string][]byte

func (f files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, ok := f[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", `"`+sumOf(b)[:8]+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// filled fills a directory from a source, with small ranges, and returns it.
func filled(t *testing.T, s fill.Source, tree string) (dir string, err error) {
	t.Helper()
	dir = t.TempDir()
	list, err := s.Files(context.Background())
	if err != nil {
		return dir, err
	}
	plan, err := fill.NewPlan(list, tree, 1<<40)
	if err != nil {
		return dir, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return dir, fill.Run(context.Background(), fill.Config{
		Root: root, Source: s, Plan: plan, Chunk: 64 << 10, Gap: time.Millisecond, Stall: time.Second, Tries: 3,
	})
}

func has(t *testing.T, dir, name string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, %v; should have %d", name, len(got), err, len(want))
	}
}

// fails checks that an error is one line with the given words, without any secret.
func fails(t *testing.T, what string, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v; should say %q", what, err, words)
		return
	}
	if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, token) || strings.Contains(text, "signature") {
		t.Errorf("%s: says %q", what, text)
	}
}

// Files with their URLs are read in ranges, wherever they are on the server.
func TestHTTP(t *testing.T) {
	one, two := bytesOf(300<<10+5), []byte("small")
	s := serve(t, files{"/x/one": one, "/two": two})
	src, err := HTTP([]HTTPFile{{s.URL + "/x/one?signature=1", "m/model.bin", sumOf(one)}, {s.URL + "/two", "config.json", sumOf(two)}}, allowed)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filled(t, src, "")
	if err != nil {
		t.Fatal(err)
	}
	has(t, dir, "m/model.bin", one)
	has(t, dir, "config.json", two)
}

// A list of sha256sum names the files next to it. Names may have any character.
func TestHTTPList(t *testing.T) {
	one, two := bytesOf(100<<10), []byte("small")
	list := fmt.Sprintf("%s  ./a b%%2f?.bin\n%s *sub/two\r\n\n", sumOf(one), sumOf(two))
	s := serve(t, files{"/m/SHA256SUMS": []byte(list), "/m/a b%2f?.bin": one, "/m/sub/two": two})
	src, err := HTTPList(s.URL+"/m/SHA256SUMS", allowed)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filled(t, src, "")
	if err != nil {
		t.Fatal(err)
	}
	has(t, dir, "a b%2f?.bin", one)
	has(t, dir, "sub/two", two)
}

// A hostile list is refused before any byte is read.
func TestHostileLists(t *testing.T) {
	sum := strings.Repeat("0", 64)
	for text, words := range map[string]string{
		"":                                  "is empty",
		sum + "  ../../etc/passwd\n":        "not a plain path",
		sum + "  /etc/passwd\n":             "not a plain path",
		sum + "  a/../../b\n":               "not a plain path",
		sum + "  .stargate/region\n":        "uses this name itself",
		sum + "  a\x1b[2J\n":                "control characters",
		sum + " a\n":                        "not one of sha256sum",
		sum[1:] + "g  a\n":                  "not one of sha256sum",
		"\n<html>" + token + "</html>\n":    "line 2 of the list of files: it has 25 bytes, and is not one of sha256sum",
		strings.Repeat("x", mostList+1):     "more than 8388608 bytes",
		strings.Repeat(sum+"  a\n", 10_001): "more than 10000 files",
	} {
		s := serve(t, files{"/list": []byte(text)})
		src, err := HTTPList(s.URL+"/list", allowed)
		if err != nil {
			t.Fatal(err)
		}
		_, err = src.Files(context.Background())
		fails(t, fmt.Sprintf("%.40q", text), err, words)
	}
}

// lying serves one file, and changes an answer for a range.
func lying(b []byte, how func(w http.ResponseWriter, r *http.Request, n int) (done bool)) http.Handler {
	var n atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "bytes=0-0" && how(w, r, int(n.Add(1))) {
			return
		}
		files{"/f": b}.ServeHTTP(w, r)
	})
}

// Servers that stall, cut, or lie about ranges do not damage a file. Temporary failures are
// repeated, and others end the run with a sentence.
func TestHostileServers(t *testing.T) {
	b := bytesOf(192 << 10) // three ranges
	always := func(how func(w http.ResponseWriter, r *http.Request)) func(http.ResponseWriter, *http.Request, int) bool {
		return func(w http.ResponseWriter, r *http.Request, _ int) bool { how(w, r); return true }
	}
	for _, c := range []struct {
		what  string
		how   func(w http.ResponseWriter, r *http.Request, n int) bool
		words string
	}{
		{"it fails sometimes", func(w http.ResponseWriter, _ *http.Request, n int) bool {
			if n <= 2 {
				http.Error(w, "later", http.StatusServiceUnavailable)
			}
			return n <= 2
		}, ""},
		{"it stalls once", func(w http.ResponseWriter, r *http.Request, n int) bool {
			if n == 2 {
				w.WriteHeader(http.StatusPartialContent)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
			return n == 2
		}, ""},
		{"it stalls", always(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), "in 1s"},
		{"it cuts", always(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "65536")
			files{"/f": b}.ServeHTTP(cutting{w, 1000}, r)
		}), ""},
		{"it sends nothing", always(func(w http.ResponseWriter, r *http.Request) {
			files{"/f": b}.ServeHTTP(cutting{w, 0}, r)
		}), "ended"},
		{"it sends another range", always(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Range", "bytes=1-65536")
			files{"/f": b}.ServeHTTP(w, r)
		}), "sends the range"},
		{"it lies about the range", always(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(b)-1, len(b)))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(b[:64<<10])
		}), "sends the range"},
		{"it sends fewer bytes", always(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(b[:1000])
		}), "sends 1000 bytes instead of 65536"},
		{"it ignores the range", always(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			files{"/f": b}.ServeHTTP(w, r)
		}), "the whole file instead of a part"},
		{"it sends another version", always(func(w http.ResponseWriter, r *http.Request) {
			files{"/f": append([]byte("x"), b[1:]...)}.ServeHTTP(w, r)
		}), "another version of the file"},
		{"it sends other bytes", always(func(w http.ResponseWriter, r *http.Request) {
			tagged := &fixedTag{w, `"` + sumOf(b)[:8] + `"`}
			files{"/f": append([]byte("x"), b[1:]...)}.ServeHTTP(tagged, r)
		}), "should have sha256:" + sumOf(b)},
		{"it refuses", always(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }), "answers 403 Forbidden"},
		{"it compresses", always(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			files{"/f": b}.ServeHTTP(w, r)
		}), "encoded"},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := serve(t, lying(b, c.how))
			src, err := HTTP([]HTTPFile{{s.URL + "/f", "f", sumOf(b)}}, allowed)
			if err != nil {
				t.Fatal(err)
			}
			dir, err := filled(t, src, "")
			if c.words == "" {
				if err != nil {
					t.Fatal(err)
				}
				has(t, dir, "f", b)
				return
			}
			fails(t, c.what, err, c.words)
			if _, err := os.Stat(filepath.Join(dir, "f")); err == nil {
				t.Error("the file has its name")
			}
		})
	}
}

// cutting ends a connection after some bytes.
type cutting struct {
	http.ResponseWriter
	after int
}

func (c cutting) Write(b []byte) (int, error) {
	_, _ = c.ResponseWriter.Write(b[:min(len(b), c.after)])
	c.ResponseWriter.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// fixedTag sends the same tag for other bytes.
type fixedTag struct {
	http.ResponseWriter
	tag string
}

func (f *fixedTag) WriteHeader(status int) {
	f.Header().Set("ETag", f.tag)
	f.ResponseWriter.WriteHeader(status)
}

// A server without ranges sends whole files. One without a size is refused.
func TestNoRanges(t *testing.T) {
	b := bytesOf(200 << 10)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sized" {
			w.Header().Set("Content-Length", fmt.Sprint(len(b)))
		} else {
			w.(http.Flusher).Flush()
		}
		_, _ = w.Write(b)
	}))
	src, err := HTTP([]HTTPFile{{s.URL + "/sized", "f", sumOf(b)}}, allowed)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filled(t, src, "")
	if err != nil {
		t.Fatal(err)
	}
	has(t, dir, "f", b)
	if src, err = HTTP([]HTTPFile{{s.URL + "/endless", "f", sumOf(b)}}, allowed); err != nil {
		t.Fatal(err)
	}
	_, err = filled(t, src, "")
	fails(t, "no size", err, "does not tell the file's size")
}

// A data set's author cannot make the driver reach the node's own services: by an address, a name,
// or a redirect. With a list of hosts, no other host is reached.
func TestHosts(t *testing.T) {
	inner := serve(t, files{"/f": []byte("inner")})
	_, port, _ := strings.Cut(strings.TrimPrefix(inner.URL, "http://"), ":")
	for _, c := range []struct {
		url   string
		hosts []string
		words string
	}{
		{inner.URL, nil, "local address"},
		{"http://localhost:" + port, nil, "local address"},
		{"http://[::1]:" + port, nil, "local address"},
		{"http://169.254.169.254", nil, "local address"},
		{"http://0.0.0.0:" + port, nil, "local address"},
		{"http://[::ffff:127.0.0.1]:" + port, nil, "local address"},
		{"http://[fd00:ec2::254]", nil, "local address"},
		{"http://100.100.100.200", nil, "local address"},
		{"http://168.63.129.16", nil, "local address"},
		{"http://[64:ff9b::a9fe:a9fe]", nil, "local address"},
		{"http://192.0.2.7", nil, "local address"}, // the node's own
		{inner.URL, []string{"models.example"}, "does not allow data sets from host"},
		{inner.URL, []string{"*.0.0.1"}, ""},
		{inner.URL, []string{host}, ""},
		{"http://localhost:" + port, []string{"LOCALHOST"}, ""},
	} {
		src, err := HTTP([]HTTPFile{{c.url + "/f", "f", sumOf([]byte("inner"))}}, Access{Hosts: c.hosts, Node: []netip.Addr{netip.MustParseAddr("192.0.2.7")}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = src.Files(context.Background())
		if c.words == "" {
			if err != nil {
				t.Errorf("%s, %q: %v", c.url, c.hosts, err)
			}
			continue
		}
		fails(t, c.url, err, c.words)
	}
	outer := serve(t, http.RedirectHandler("http://localhost:"+port+"/f", http.StatusFound))
	src, err := HTTP([]HTTPFile{{outer.URL + "/f", "f", sumOf([]byte("inner"))}}, allowed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = src.Files(context.Background())
	fails(t, "a redirect", err, "does not allow data sets from host")
}

// Credentials go to the data set's own host by https only, and never into an error.
func TestCredentials(t *testing.T) {
	var leaked atomic.Bool
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			leaked.Store(true)
		}
		files{"/f": []byte("here")}.ServeHTTP(w, r)
	}))
	defer other.Close()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "a token is needed", http.StatusUnauthorized)
			return
		}
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, other.URL+"/f", http.StatusFound)
			return
		}
		files{"/f": []byte("here")}.ServeHTTP(w, r)
	}))
	defer s.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	at := strings.TrimPrefix(s.URL, "https://")
	with := Access{Hosts: []string{host, "localhost"}, Credentials: Credentials{
		KeyToken: []byte(token + "\n"), KeyHosts: []byte("models.example, " + at + "\n"), KeyAuthority: ca,
	}}
	get := func(url string, a Access) (string, error) {
		src, err := HTTP([]HTTPFile{{url, "f", sumOf([]byte("here"))}}, a)
		if err != nil {
			return "", err
		}
		return filled(t, src, "")
	}
	dir, err := get(s.URL+"/f", with)
	if err != nil {
		t.Fatal(err)
	}
	has(t, dir, "f", []byte("here"))
	_, err = get(s.URL+"/f", Access{Hosts: with.Hosts, Credentials: Credentials{KeyToken: []byte("wrong"), KeyHosts: []byte(at), KeyAuthority: ca}})
	fails(t, "another token", err, "answers 401 Unauthorized")
	_, err = get(s.URL+"/f?signature=s", Access{Hosts: with.Hosts})
	fails(t, "an unknown authority", err, "certificate")
	_, err = get("http://"+host+"/f", with)
	fails(t, "http", err, "use https://")
	_, err = get("https://user:"+token+"@"+host+"/f", allowed)
	fails(t, "a password in a URL", err, "put them into a Secret")
	_, err = get(other.URL+"/f", with)
	fails(t, "a host that the Secret does not name", err, "gets no credentials")
	_, err = get(s.URL+"/moved", with)
	if err != nil {
		t.Errorf("a redirect to another host: %v", err)
	}
	if leaked.Load() {
		t.Error("another host got the credentials")
	}
	if text := fmt.Sprintf("%v %+v %#v", with.Credentials, with, with); strings.Contains(text, token) {
		t.Errorf("it prints credentials: %s", text)
	}
}

// A Secret's content goes only to hosts and ports that the Secret names, whatever the source is.
func TestHostsOfASecret(t *testing.T) {
	with := func(hosts string, c Credentials) Access {
		c[KeyHosts] = []byte(hosts)
		return Access{Credentials: c}
	}
	sources := map[string]func(host, names string) error{
		"http": func(host, names string) error {
			_, err := HTTP([]HTTPFile{{"https://" + host + "/f", "f", ""}}, with(names, Credentials{KeyUser: []byte("u"), KeyPassword: []byte(token)}))
			return err
		},
		"list": func(host, names string) error {
			_, err := HTTPList("https://"+host+"/f", with(names, Credentials{KeyToken: []byte(token)}))
			return err
		},
		"s3": func(host, names string) error {
			_, err := S3(S3Config{Endpoint: "https://" + host, Bucket: "b"}, with(names, Credentials{KeyAccess: []byte("a"), KeySecret: []byte(token)}))
			return err
		},
		"oci, a token": func(host, names string) error {
			_, err := OCI(host+"/m:v1", false, with(names, Credentials{KeyToken: []byte(token)}))
			return err
		},
		"oci, a password": func(host, names string) error {
			_, err := OCI(host+"/m:v1", false, with(names, Credentials{KeyUser: []byte("u"), KeyPassword: []byte(token)}))
			return err
		},
	}
	for what, open := range sources {
		for _, c := range []struct {
			host, names string
			ok          bool
		}{
			{"models.example", "other.example models.example", true},
			{"a.models.example", "*.models.example", true},
			{"models.example:8443", "models.example:8443", true},
			{"models.example", "", false},
			{"evil.example", "models.example", false},
			{"evilmodels.example", "*.models.example", false},
			{"models.example:8443", "models.example", false},
		} {
			err := open(c.host, c.names)
			if c.ok && err != nil {
				t.Errorf("%s: %s, %q: %v", what, c.host, c.names, err)
			}
			if !c.ok {
				fails(t, fmt.Sprintf("%s: %s, %q", what, c.host, c.names), err, "gets no credentials")
			}
		}
	}
	two := []HTTPFile{{"https://models.example/f", "f", ""}, {"https://other.example/g", "g", ""}}
	_, err := HTTP(two, with("models.example", Credentials{KeyToken: []byte(token)}))
	fails(t, "a second host", err, "does not name other.example")
}

// A redirect to another port, or to a host below the first one, has neither the credentials nor the
// former URL with its signature.
func TestRedirectsHaveNoCredentials(t *testing.T) {
	for _, to := range []string{"https://models.example:8443/f", "https://user1.models.example/f"} {
		first, _ := http.NewRequest(http.MethodGet, "https://models.example/f?signature=s", nil)
		next, _ := http.NewRequest(http.MethodGet, to, nil)
		next.Header.Set("Authorization", "Bearer "+token)
		next.Header.Set("Referer", first.URL.String())
		if err := mayFollow(next, []*http.Request{first}); err != nil {
			t.Fatal(err)
		}
		if len(next.Header) != 0 {
			t.Errorf("%s gets %v", to, next.Header)
		}
	}
}

// A store cannot make the driver keep an answer of any size.
func TestLargeAnswerOfAStore(t *testing.T) {
	sent := 0
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		if r.URL.Query().Has("location") {
			fmt.Fprint(w, `<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></LocationConstraint>`)
			return
		}
		fmt.Fprint(w, `<ListBucketResult><Name>`)
		for b := bytes.Repeat([]byte("x"), 1<<20); sent < 64<<20; {
			n, err := w.Write(b)
			if sent += n; err != nil {
				return
			}
		}
		fmt.Fprint(w, `</Name><IsTruncated>false</IsTruncated></ListBucketResult>`)
	}))
	src, err := S3(S3Config{Endpoint: s.URL, Bucket: "bucket"}, allowed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = src.Files(context.Background())
	fails(t, "64 MiB of a listing", err, "the store's answer has more than")
}
