// SPDX-License-Identifier: Apache-2.0

// apiserver FILE COMMAND...: runs COMMAND beside something that answers as an API server with the objects of FILE
// (YAML), and with KUBECONFIG for it. It is what helm asks (`lookup`, --dry-run=server): kinds, lists and objects.
// It takes nothing, and knows nobody.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

type object = map[string]any

// kinds are those that can be asked for; the objects say which of them there are.
var kinds = []struct {
	group, version, plural, kind string
	namespaced                   bool
}{
	{"storage.k8s.io", "v1", "csidrivers", "CSIDriver", false},
	{"storage.k8s.io", "v1", "storageclasses", "StorageClass", false},
	{"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", false},
	{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", false},
	{"kubevirt.io", "v1", "virtualmachines", "VirtualMachine", true},
	{"kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance", true},
	{"instancetype.kubevirt.io", "v1", "virtualmachineinstancetypes", "VirtualMachineInstancetype", true},
	{"instancetype.kubevirt.io", "v1", "virtualmachineclusterinstancetypes", "VirtualMachineClusterInstancetype", false},
	{"instancetype.kubevirt.io", "v1", "virtualmachinepreferences", "VirtualMachinePreference", true},
	{"instancetype.kubevirt.io", "v1", "virtualmachineclusterpreferences", "VirtualMachineClusterPreference", false},
	{"instancetype.kubevirt.io", "v1beta1", "virtualmachineinstancetypes", "VirtualMachineInstancetype", true},
	{"instancetype.kubevirt.io", "v1beta1", "virtualmachineclusterinstancetypes", "VirtualMachineClusterInstancetype", false},
	{"instancetype.kubevirt.io", "v1beta1", "virtualmachinepreferences", "VirtualMachinePreference", true},
	{"instancetype.kubevirt.io", "v1beta1", "virtualmachineclusterpreferences", "VirtualMachineClusterPreference", false},
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "apiserver FILE COMMAND...")
		os.Exit(2)
	}
	status, err := run(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "apiserver: %v\n", err)
		os.Exit(2)
	}
	os.Exit(status)
}

func run(file string, command []string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var all []object
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var o object
		if err := yaml.Unmarshal(part, &o); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		if len(o) > 0 {
			all = append(all, o)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	go http.Serve(l, handler(all))
	dir, err := os.MkdirTemp("", "apiserver")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	config := filepath.Join(dir, "config")
	words := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
		"clusters": [{"name": "c", "cluster": {"server": "http://%s"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`, l.Addr())
	if err := os.WriteFile(config, []byte(words), 0o600); err != nil {
		return 0, err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+config)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

func handler(all []object) http.Handler {
	mux := http.NewServeMux()
	say := func(path string, what object) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(what)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": r.URL.Path})
	})
	say("/version", object{"major": "1", "minor": "34", "gitVersion": "v1.34.0"})
	say("/api", object{"kind": "APIVersions", "versions": []string{"v1"}})
	say("/api/v1", object{"kind": "APIResourceList", "groupVersion": "v1", "resources": []object{}})
	groups, resources := map[string]object{}, map[string][]object{}
	for _, k := range kinds {
		there := !strings.HasSuffix(k.group, "kubevirt.io")
		var items []object
		for _, o := range all {
			there = there || o["apiVersion"] == k.group+"/"+k.version
			if o["kind"] != k.kind || o["apiVersion"] != k.group+"/"+k.version {
				continue
			}
			items = append(items, o)
			name := fmt.Sprint(o["metadata"].(object)["name"])
			say("/apis/"+k.group+"/"+k.version+"/"+k.plural+"/"+name, o)
		}
		if !there {
			continue
		}
		version := object{"groupVersion": k.group + "/" + k.version, "version": k.version}
		groups[k.group] = object{"name": k.group, "versions": []object{version}, "preferredVersion": version}
		resources[k.group+"/"+k.version] = append(resources[k.group+"/"+k.version],
			object{"name": k.plural, "singularName": "", "namespaced": k.namespaced, "kind": k.kind, "verbs": []string{"get", "list"}})
		if items == nil {
			items = []object{}
		}
		say("/apis/"+k.group+"/"+k.version+"/"+k.plural, object{"apiVersion": k.group + "/" + k.version, "kind": k.kind + "List", "metadata": object{}, "items": items})
	}
	var list []object
	for _, g := range groups {
		list = append(list, g)
	}
	say("/apis", object{"kind": "APIGroupList", "apiVersion": "v1", "groups": list})
	for version, r := range resources {
		say("/apis/"+version, object{"kind": "APIResourceList", "groupVersion": version, "resources": r})
	}
	return mux
}
