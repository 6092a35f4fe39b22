// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Two hundred claims of one node are requested at the same time, each of them twice.
func TestDemandAtOnce(t *testing.T) {
	const volumes = 200
	n := newNode(t, 4*gib, "4g")
	n.start()
	n.createAtOnce(volumes)
	n.deleteAtOnce(volumes)
	if largest, all := capacity(t, n, "2Mi"); largest != 4*gib || all != 4*gib || len(n.left()) > 0 {
		t.Errorf("largest %d of %d, %v", largest, all, n.left())
	}
}

// demand returns the number of volumes that the test creates and deletes. SG_VOLUMES sets it, or
// SG_TEST_SCALE as for the engine's tests.
func demand(quick, normal int) int {
	if volumes, err := strconv.Atoi(os.Getenv("SG_VOLUMES")); err == nil && volumes > 0 {
		return volumes
	}
	switch os.Getenv("SG_TEST_SCALE") {
	case "long":
		return 10000
	case "quick":
		return quick
	}
	return normal
}

// holding has the sizes of resources that a process could leak.
type holding struct{ files, goroutines, kib int }

func (p *process) holds(t testing.TB) holding {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	files, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(dir + "status")
	if err != nil {
		t.Fatal(err)
	}
	_, metrics := get(t, "http://"+p.n.config.HTTP+"/metrics")
	return holding{len(files), number(t, metrics, "go_goroutines "), number(t, string(status), "VmRSS:")}
}

// number returns the number after the word with which a line begins.
func number(t testing.TB, text, word string) int {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		rest, found := strings.CutPrefix(lines.Text(), word)
		if !found {
			continue
		}
		value, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	t.Fatalf("no line begins with %q", word)
	return 0
}

// comeAndGo makes several callers create and delete volumes.
func (n *node) comeAndGo(volumes int) {
	n.t.Helper()
	const callers = 4
	var g sync.WaitGroup
	for caller := range callers {
		g.Add(1)
		go func() {
			defer g.Done()
			for i := caller; i < volumes; i += callers {
				name := fmt.Sprintf("pvc-%d", i)
				_, err := n.CreateVolume(background, createRequest(name, 16*mib))
				if err == nil {
					_, err = n.DeleteVolume(background, &csi.DeleteVolumeRequest{VolumeId: name})
				}
				if err != nil {
					n.t.Errorf("%s: %v", name, err)
					return
				}
			}
		}()
	}
	g.Wait()
}

// whole makes all calls of a volume's life, and repeats them like their callers. A system that gets
// no processor time does not freeze in time for a copy, and the call then fails with Aborted.
func (n *node) whole(lives int) {
	n.t.Helper()
	for i := range lives {
		for _, c := range life(n, fmt.Sprintf("life-%d", i)) {
			if err := c.again(); err != nil {
				n.t.Fatalf("%s: %v", c.name, err)
			}
		}
	}
}

// After many calls, a driver holds as many resources as after few calls.
func TestDemandOverTime(t *testing.T) {
	n := newNode(t, gib, "512m")
	n.config.HTTP = freePort(t)
	n.overTime(n.run(0), 100, demand(200, 1000), 20)
}

// overTime compares the driver's resources after few volumes and after many more volumes. It makes
// all calls only for one of oneIn volumes, because they take many times longer than creation and
// deletion.
func (n *node) overTime(p *process, few, many, oneIn int) {
	t := n.t
	t.Helper()
	n.comeAndGo(few)
	n.whole(max(1, few/oneIn))
	before := p.holds(t)
	n.comeAndGo(many)
	n.whole(max(1, many/oneIn))
	after := p.holds(t)
	p.stop()
	t.Logf("%d volumes: before %+v, after %+v", many, before, after)
	// The limits allow for some connections, for a round of a collector, and for the runtime's
	// own memory.
	if after.files > before.files+8 || after.goroutines > before.goroutines+16 || after.kib > before.kib+32<<10 {
		t.Errorf("%d volumes have left resources: before %+v, after %+v", many, before, after)
	}
	if left := n.rest(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
