// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
)

// BenchmarkCreate measures CreateVolume of 1 GiB, over the driver's socket and with the tools. For
// comparison, it zeroes the same number of bytes on the same tmpfs: by writes (like dd), and by
// stores to a mapping (memset). It alternates between the three, and reports medians. In a zone of
// files, the kernel allocates all memory when the volume is created, so a running VM never lacks
// memory.
//
//	make build && cd csi-driver
//	unshare --mount ../mk/tools/go test -run '^$' -bench Create -benchtime 9x ./test
func BenchmarkCreate(b *testing.B) {
	n := newNode(b, 2*gib, "2g")
	n.start()
	all := map[string][]time.Duration{}
	for b.Loop() {
		for what, work := range map[string]func(*node){"create": (*node).createWhole, "write": (*node).writeZeroes, "memset": (*node).storeZeroes} {
			start := time.Now()
			work(n)
			all[what] = append(all[what], time.Since(start))
			b.StopTimer()
			n.empty()
			b.StartTimer()
		}
	}
	for what, took := range all {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Milliseconds()), what+"-ms")
		b.ReportMetric(float64(took[0].Milliseconds()), what+"-least-ms")
	}
}

const bulk = "bulk"

func (n *node) createWhole() {
	n.t.Helper()
	n.create("v", gib)
	var st unix.Stat_t
	if err := unix.Stat(n.zoneFile("v"), &st); err != nil || st.Blocks*512 < gib {
		n.t.Fatalf("the volume has %d bytes of memory, %v", st.Blocks*512, err)
	}
}

func (n *node) open() *os.File {
	n.t.Helper()
	f, err := os.Create(filepath.Join(n.zoneDir, bulk))
	if err != nil {
		n.t.Fatal(err)
	}
	return f
}

func (n *node) writeZeroes() {
	n.t.Helper()
	f := n.open()
	defer f.Close()
	piece := make([]byte, mib)
	for range gib / mib {
		if _, err := f.Write(piece); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n *node) storeZeroes() {
	n.t.Helper()
	f := n.open()
	defer f.Close()
	if err := f.Truncate(gib); err != nil {
		n.t.Fatal(err)
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(gib), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		n.t.Fatal(err)
	}
	clear(m)
	if err := unix.Munmap(m); err != nil {
		n.t.Fatal(err)
	}
}

// empty frees the file's memory, so that each measurement gets its memory from the kernel.
func (n *node) empty() {
	n.t.Helper()
	if _, err := n.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: "v"}); err != nil {
		n.t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(n.zoneDir, bulk)); err != nil {
		n.t.Fatal(err)
	}
}
