// SPDX-License-Identifier: Apache-2.0

// Package datasets fills data sets from real servers: the registry of the project distribution, and
// the store versitygw. It is a Go module of its own, because these servers need many other modules.
package datasets

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	"github.com/sirupsen/logrus"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3api"
	"github.com/versity/versitygw/s3api/middlewares"
	"golang.org/x/crypto/bcrypt"

	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"

	"stargate/csi-driver/internal/dataset/fill"
	"stargate/csi-driver/internal/dataset/source"
)

const (
	user   = "reader"
	secret = "s3cret-passw0rd"
)

func TestMain(m *testing.M) {
	logrus.SetOutput(io.Discard) // the registry's log of each request
	os.Exit(m.Run())
}

// allowed lets a test reach its own servers.
func allowed(c source.Credentials) source.Access {
	return source.Access{Hosts: []string{"127.0.0.1"}, Credentials: c}
}

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

// filled fills a directory from a source, in several ranges.
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
	return dir, fill.Run(context.Background(), fill.Config{Root: root, Source: s, Plan: plan, Chunk: 1 << 20, Gap: time.Millisecond, Tries: 2})
}

func has(t *testing.T, dir, name string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: %d bytes, %v; should have %d", name, len(got), err, len(want))
	}
}

// fails checks that an error is one line with the given words, without a secret.
func fails(t *testing.T, what string, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: %v; should say %q", what, err, words)
		return
	}
	if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, secret) {
		t.Errorf("%s: says %q", what, text)
	}
}

// registry runs a registry; its users need a password if locked is set.
func registry(t *testing.T, locked bool) *httptest.Server {
	t.Helper()
	config := &configuration.Configuration{Storage: configuration.Storage{"inmemory": configuration.Parameters{}}}
	if locked {
		hash, err := bcrypt.GenerateFromPassword([]byte(secret), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "htpasswd")
		if err := os.WriteFile(file, []byte(user+":"+string(hash)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		config.Auth = configuration.Auth{"htpasswd": configuration.Parameters{"realm": "test", "path": file}}
	}
	app := handlers.NewApp(context.Background(), config)
	s := httptest.NewUnstartedServer(app)
	if locked {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(func() { s.Close(); _ = app.Shutdown() })
	return s
}

// authority returns the certificate of a server.
func authority(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// store runs a store with one bucket, and returns its URL and the folder of the bucket.
func store(t *testing.T) (url, bucket string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"data", "meta", "data/models"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	about, err := meta.NewSideCar(filepath.Join(dir, "meta"))
	if err != nil {
		t.Fatal(err)
	}
	be, err := posix.New(filepath.Join(dir, "data"), about, posix.PosixOpts{SideCarDir: filepath.Join(dir, "meta"), Concurrency: 100})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	root := middlewares.RootUserConfig{Access: user, Secret: secret}
	iam := auth.NewIAMServiceSingle(auth.Account{Access: user, Secret: secret, Role: auth.RoleAdmin})
	s, err := s3api.New(be, root, "us-east-1", iam, nil, nil, nil, nil, s3api.WithQuiet(), s3api.WithConcurrencyLimiter(100, 100))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.ServeMultiPort([]string{address}) }()
	t.Cleanup(func() {
		_ = s.ShutDown()
		<-done
		be.Shutdown()
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	return "http://" + address, filepath.Join(dir, "data", "models")
}

// put stores an object as a file of the bucket's folder.
func put(t *testing.T, bucket, key string, b []byte) {
	t.Helper()
	path := filepath.Join(bucket, key)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// push stores a blob in a registry without TLS.
func push(t *testing.T, base, repository, path, kind string, b []byte) {
	t.Helper()
	method, url := http.MethodPut, base+"/v2/"+repository+"/"+path
	if kind == "" {
		res, err := http.Post(base+"/v2/"+repository+"/blobs/uploads/", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		url = res.Header.Get("Location") + "&digest=sha256:" + sumOf(b)
	}
	r, err := http.NewRequest(method, url, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusCreated {
		t.Fatalf("%s: %s: %s", url, res.Status, text)
	}
}
