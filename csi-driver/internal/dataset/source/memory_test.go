// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"stargate/csi-driver/internal/dataset/fill"
)

// With these variables, the test program fills a directory, and prints the memory that it needed.
const (
	envURL    = "SG_SOURCE_TEST_URL"
	envDigest = "SG_SOURCE_TEST_DIGEST"
	envDir    = "SG_SOURCE_TEST_DIR"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(envURL); url != "" {
		os.Exit(beFiller(url))
	}
	os.Exit(m.Run())
}

// rss returns a value of this process's memory in KiB.
func rss(key string) (kib int64) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			fmt.Sscan(value, &kib)
		}
	}
	return kib
}

func beFiller(url string) int {
	before := rss("VmRSS")
	src, err := HTTP([]HTTPFile{{url, "f", os.Getenv(envDigest)}}, allowed)
	if err != nil {
		return 1
	}
	files, err := src.Files(context.Background())
	if err != nil {
		return 1
	}
	plan, err := fill.NewPlan(files, "", 1<<40)
	if err != nil {
		return 1
	}
	root, err := os.OpenRoot(os.Getenv(envDir))
	if err != nil {
		return 1
	}
	if err := fill.Run(context.Background(), fill.Config{Root: root, Source: src, Plan: plan}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(rss("VmHWM") - before)
	return 0
}

// zeros is a file of zeroes.
type zeros struct{ size, at int64 }

func (z *zeros) Read(b []byte) (int, error) {
	n := min(int64(len(b)), z.size-z.at)
	clear(b[:n])
	z.at += n
	if n == 0 {
		return 0, io.EOF
	}
	return int(n), nil
}

func (z *zeros) Seek(to int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		z.at = to
	case io.SeekCurrent:
		z.at += to
	case io.SeekEnd:
		z.at = z.size + to
	}
	return z.at, nil
}

// A fill needs at most 64 MiB besides the file, however large the file is.
func TestMemory(t *testing.T) {
	const size, most = 400 << 20, 64 << 10
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, &zeros{size: size})
	}))
	h := sha256.New()
	if _, err := io.Copy(h, &zeros{size: size}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envURL+"="+s.URL+"/f", envDigest+"="+hex.EncodeToString(h.Sum(nil)), envDir+"="+t.TempDir())
	cmd.Stderr = os.Stderr
	start := time.Now()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var kib int64
	if _, err := fmt.Sscan(string(out), &kib); err != nil || kib > most {
		t.Errorf("%s KiB for a file of %d bytes, %v", out, size, err)
	}
	t.Logf("%d KiB, %s", kib, time.Since(start))
}
