// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

type written = map[string]any

// resources are the kinds that the server has. It serves a version of KubeVirt's API only if an
// object has that version.
var resources = []struct {
	group, version, plural, kind string
	namespaced                   bool
}{
	{"apps", "v1", "daemonsets", "DaemonSet", true},
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

// answering starts a server that answers like an API server with these objects (YAML). Helm's
// `lookup` requests kinds, lists and objects from it. The server changes nothing, and requires no
// credentials.
func answering(t *testing.T, objects []string) string {
	t.Helper()
	var all []written
	for _, text := range objects {
		var o written
		if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		all = append(all, o)
	}
	server := httptest.NewServer(handler(all))
	t.Cleanup(server.Close)
	return server.URL
}

func handler(all []written) http.Handler {
	mux := http.NewServeMux()
	say := func(path string, what written) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(what)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(written{"kind": "Status", "apiVersion": "v1", "status": "Failure",
			"reason": "NotFound", "code": http.StatusNotFound, "message": r.URL.Path})
	})
	say("/version", written{"major": "1", "minor": "34", "gitVersion": "v1.34.0"})
	say("/api", written{"kind": "APIVersions", "versions": []string{"v1"}})
	say("/api/v1", written{"kind": "APIResourceList", "groupVersion": "v1", "resources": []written{
		{"name": "secrets", "singularName": "", "namespaced": true, "kind": "Secret", "verbs": []string{"get", "list"}},
		{"name": "persistentvolumes", "singularName": "", "namespaced": false, "kind": "PersistentVolume", "verbs": []string{"get", "list"}}}})
	volumes := []written{}
	for _, o := range all {
		if o["kind"] == "PersistentVolume" {
			volumes = append(volumes, o)
		}
	}
	say("/api/v1/persistentvolumes", written{"apiVersion": "v1", "kind": "PersistentVolumeList", "metadata": written{}, "items": volumes})
	for _, o := range all {
		if m := o["metadata"].(written); o["kind"] == "Secret" {
			say(fmt.Sprintf("/api/v1/namespaces/%s/secrets/%s", m["namespace"], m["name"]), o)
		}
	}
	groups, lists := map[string]written{}, map[string][]written{}
	for _, k := range resources {
		there := !strings.HasSuffix(k.group, "kubevirt.io")
		items := []written{}
		for _, o := range all {
			served := o["apiVersion"] == k.group+"/"+k.version
			there = there || served
			if !served || o["kind"] != k.kind {
				continue
			}
			items = append(items, o)
			in, m := "", o["metadata"].(written)
			if k.namespaced {
				in = fmt.Sprintf("namespaces/%s/", m["namespace"])
			}
			say("/apis/"+k.group+"/"+k.version+"/"+in+k.plural+"/"+fmt.Sprint(m["name"]), o)
		}
		if !there {
			continue
		}
		version := written{"groupVersion": k.group + "/" + k.version, "version": k.version}
		groups[k.group] = written{"name": k.group, "versions": []written{version}, "preferredVersion": version}
		lists[k.group+"/"+k.version] = append(lists[k.group+"/"+k.version], written{"name": k.plural,
			"singularName": "", "namespaced": k.namespaced, "kind": k.kind, "verbs": []string{"get", "list"}})
		say("/apis/"+k.group+"/"+k.version+"/"+k.plural, written{"apiVersion": k.group + "/" + k.version,
			"kind": k.kind + "List", "metadata": written{}, "items": items})
	}
	var list []written
	for _, g := range groups {
		list = append(list, g)
	}
	say("/apis", written{"kind": "APIGroupList", "apiVersion": "v1", "groups": list})
	for version, r := range lists {
		say("/apis/"+version, written{"kind": "APIResourceList", "groupVersion": version, "resources": r})
	}
	return mux
}
