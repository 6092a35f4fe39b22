// SPDX-License-Identifier: Apache-2.0

package domainhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/kubevirt/hookproto"
)

// program returns the path of the real stargate-hook, which all tests share.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "stargate-hook")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "stargate-hook")
	if said, err := exec.Command("go", "build", "-o", program, "stargate/csi-driver/cmd/stargate-hook").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s", err, said)
		return 1
	}
	return m.Run()
}

// start runs the real program with a real socket and one claim, data.
func start(t *testing.T) *grpc.ClientConn {
	t.Helper()
	dir := t.TempDir()
	hidden := filepath.Join(dir, "data", ".stargate")
	if err := os.MkdirAll(hidden, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(hidden, "volume.json"), `{"version":1,"base":"0x1000000000","size":4194304,"mode":"rw"}`)
	write(t, filepath.Join(hidden, "region"), strings.Repeat("\x00", 4<<20))
	socket := filepath.Join(dir, "s.sock")
	write(t, socket, "") // The program must start even if a file or a stale socket has the socket's name.
	if err := exec.Command(program, "--socket", socket).Run(); err == nil {
		t.Error("the program has replaced a regular file by its socket")
	}
	os.Remove(socket)
	var said bytes.Buffer
	cmd := exec.Command(program, "--socket", socket, "--volumes", dir)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, said.String())
		}
		if strings.Contains(said.String(), "password") {
			t.Errorf("the log has secret data: %s", said.String())
		}
	})
	for range 200 {
		if st, err := os.Stat(socket); err == nil {
			if st.Mode().Perm() != 0o600 {
				t.Errorf("socket of mode %v", st.Mode())
			}
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	c, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func ask(c *grpc.ClientConn, method string, request hookproto.Message) (hookproto.Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return hookproto.Ask(ctx, c, method, request)
}

func vmi(volumes string) []byte {
	text, _ := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{"stargate.csi.dev/volumes": volumes}},
		"spec":     map[string]any{"secret": "password"},
	})
	return text
}

const domainXML = `<domain type="kvm"><memory unit="GiB">1</memory><os><type arch="x86_64" machine="q35">hvm</type></os><devices/></domain>`

func TestVersions(t *testing.T) {
	c := start(t)
	info, err := ask(c, "/"+infoService+"/Info", hookproto.Message{})
	if err != nil || string(info.Get(1)) != hookName || len(info[3]) != 1 {
		t.Fatalf("%v, %v", info, err)
	}
	var offered []string
	for _, v := range info[4] {
		offered = append(offered, string(v))
	}
	if !slices.Equal(offered, versions) {
		t.Errorf("versions: %v", offered)
	}
	var first []byte
	for _, v := range offered {
		m, err := ask(c, "/kubevirt.hooks."+v+".Callbacks/OnDefineDomain", hookproto.Message{}.Add(1, []byte(domainXML)).Add(2, vmi("data")))
		if err != nil || !bytes.Contains(m.Get(1), []byte("0x1000000000")) {
			t.Fatalf("%s: %v, %v", v, m, err)
		}
		if first == nil {
			first = m.Get(1)
		}
		if !bytes.Equal(m.Get(1), first) {
			t.Errorf("%s answers otherwise: %s", v, m.Get(1))
		}
	}
	m, err := ask(c, "/"+pluginService+"/MutateDomain", hookproto.Message{}.Add(1, []byte("libvirt")).Add(2, []byte(domainXML)).Add(3, vmi("data")).
		Add(4, hookproto.Message{}.Add(1, []byte("Boot")).Encode()))
	if err != nil || !bytes.Equal(m.Get(1), first) {
		t.Errorf("plugin: %v, %v", m, err)
	}
	m, err = ask(c, "/kubevirt.hooks.v1alpha3.Callbacks/PreCloudInitIso", hookproto.Message{}.Add(1, []byte("a")).Add(3, []byte("password")))
	if err != nil || string(m.Get(1)) != "a" || string(m.Get(3)) != "password" {
		t.Errorf("cloud-init: %v, %v", m, err)
	}
	if _, err := ask(c, "/kubevirt.hooks.v1alpha3.Callbacks/Shutdown", hookproto.Message{}); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	c := start(t)
	mutate := func(kind, why string) (hookproto.Message, error) {
		return ask(c, "/"+pluginService+"/MutateDomain", hookproto.Message{}.Add(1, []byte(kind)).Add(2, []byte(domainXML)).Add(3, vmi("data")).
			Add(4, hookproto.Message{}.Add(1, []byte(why)).Encode()))
	}
	define := func(xml string, vmi []byte) (hookproto.Message, error) {
		return ask(c, "/kubevirt.hooks.v1alpha3.Callbacks/OnDefineDomain", hookproto.Message{}.Add(1, []byte(xml)).Add(2, vmi))
	}
	for i, r := range []struct {
		call  func() (hookproto.Message, error)
		words string
	}{
		{func() (hookproto.Message, error) { return mutate("xen", "Boot") }, "but volumes need libvirt's type"},
		{func() (hookproto.Message, error) { return mutate("libvirt", "MigrationTarget") }, "cannot migrate"},
		{func() (hookproto.Message, error) { return mutate("libvirt", "MigrationSource") }, "cannot migrate"},
		{func() (hookproto.Message, error) { return define(domainXML, []byte("{")) }, "object cannot be read"},
		{func() (hookproto.Message, error) { return define(domainXML, []byte("{}")) }, "annotation stargate.csi.dev/volumes is missing"},
		{func() (hookproto.Message, error) { return define(domainXML, vmi("../data")) }, "cannot be the name of a claim"},
		{func() (hookproto.Message, error) { return define(domainXML, vmi("elsewhere")) }, "claim elsewhere: there is no .stargate/volume.json"},
		{func() (hookproto.Message, error) { return define("<domain>", vmi("data")) }, "the domain cannot be read"},
	} {
		m, err := r.call()
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(fmt.Sprint(err), r.words) {
			t.Errorf("%d: not refused with %q: %v, %v", i, r.words, m, err)
		}
	}
}

// KubeVirt distinguishes sockets only by their file names, even if they are in different folders.
func TestSocket(t *testing.T) {
	dir := t.TempDir()
	if got, want := Socket(dir, "a.b"), filepath.Join(dir, "a.b.sock"); got != want {
		t.Errorf("the socket's path is %s, and should be %s", got, want)
	}
	if path := filepath.Join(dir, "x.sock"); Socket(path, "a.b") != path {
		t.Errorf("a path is %s", Socket(path, "a.b"))
	}
}
