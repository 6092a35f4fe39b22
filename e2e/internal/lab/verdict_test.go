// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLogThatDoesNotEnd(t *testing.T) {
	console := filepath.Join(t.TempDir(), "console")
	if err := awaitText(console, 0, endMarker, time.Millisecond); err == nil {
		t.Error("awaitText succeeded on a log that does not exist")
	}
	if err := os.WriteFile(console, []byte("[    1.0] WARN"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := awaitText(console, 0, endMarker, 20*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "within 20ms") {
		t.Errorf("awaitText succeeded on a log without an end: %v", err)
	}
}

func TestLogThatEndsLate(t *testing.T) {
	console := filepath.Join(t.TempDir(), "console")
	ended := make(chan error)
	go func() { ended <- awaitText(console, 0, endMarker, time.Minute) }()
	for _, text := range []string{"[    1.0] hello\n", "[    2.0] " + endMarker + "\n"} {
		time.Sleep(20 * time.Millisecond)
		select {
		case err := <-ended:
			t.Fatalf("before its end: %v", err)
		default:
		}
		if err := os.WriteFile(console, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
