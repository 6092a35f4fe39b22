// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
)

const (
	driver  = "stargate.csi.dev"
	service = "hook.ns.svc"
	board   = "0b5e55ed-0000-4000-8000-00000000beef"
)

func claimOf(name, volume, class string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: volume, StorageClassName: &class, AccessModes: modes,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func volumeOn(name, node string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            modes,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "topology." + driver + "/node", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}
}

// hostNamed returns a node whose host name label may differ from its name.
func hostNamed(name, host string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: host}}}
}

func object(kind, namespace, name string, more map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kubevirt.io/v1", "kind": kind}}
	for k, v := range more {
		u.Object[k] = v
	}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// world is a cluster with the objects that VMs need, and with some claims that VMs cannot use.
type world struct {
	version string
	gates   []any
	driver  bool
	config  Config
	evicts  string // the cluster's evictionStrategy

	gatesOff []any
}

func usual() world {
	return world{version: "v1.8.4", gates: []any{"Sidecar", "Plugins"}, driver: true, config: Config{API: Sidecar, Image: "img:1", PullPolicy: "IfNotPresent"}}
}

func (w world) objects() []runtime.Object {
	const many, once, read = corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadOnlyMany
	block := claimOf("block", "", "stargate", many)
	mode := corev1.PersistentVolumeBlock
	block.Spec.VolumeMode = &mode
	leaving := claimOf("leaving", "", "stargate", many)
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: time.Now()}, []string{"x"}
	exchanging := hostNamed("n5", "n5")
	exchanging.Labels["topology."+driver+"/node"] = "n5"
	all := []runtime.Object{
		claimOf("data", "pv-data", "stargate", many), claimOf("models", "", "stargate", read), claimOf("mine", "pv-mine", "stargate", once),
		claimOf("far", "pv-far", "stargate", many), claimOf("lost", "pv-lost", "stargate", many), claimOf("disk", "", "ceph", many), block, leaving,
		claimOf("either", "", "stargate", once, read), claimOf("first", "", "stargate", read, once),
		claimOf("both", "", "stargate", once, many), claimOf("several", "", "stargate", many, once),
		claimOf("written", "pv-written", "stargate", many), volumeOn("pv-written", "n1", once, many), claimOf("made", "pv-made", "stargate", many),
		volumeOn("pv-data", "n1", many), volumeOn("pv-mine", "n1", once), volumeOn("pv-far", "n2", many), volumeOn("pv-lost", "n3", many),
		volumeOn("pv-made", "n1", read, many), claimOf("named", "pv-named", "stargate", many), volumeOn("pv-named", "n4", many),
		hostNamed("n1", "n1"), hostNamed("n4", "host-4.example"), hostNamed("n3", "n3"), exchanging,
		claimOf("soon", "pv-soon", "stargate", many), volumeOn("pv-soon", "n5", many),
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "stargate"}, Provisioner: driver},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "ceph"}, Provisioner: "ceph.example"},
	}
	for _, n := range []string{"n1", "n2", "n4"} {
		drivers := []storagev1.CSINodeDriver{{Name: driver}}
		all = append(all, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n}, Spec: storagev1.CSINodeSpec{Drivers: drivers}})
	}
	if w.driver {
		all = append(all, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}})
	}
	return all
}

func (w world) reviewer(t *testing.T, more ...runtime.Object) *Reviewer {
	t.Helper()
	objects := []runtime.Object{object("VirtualMachineInstance", "ns", "owner", map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{driver + "/volumes": "mine,either,first:ro,both,several,written"}}, "status": map[string]any{"phase": "Running"}})}
	if w.version != "" {
		objects = append(objects, object("KubeVirt", "kubevirt", "kubevirt", map[string]any{
			"spec": map[string]any{"configuration": map[string]any{
				"evictionStrategy": w.evicts, "developerConfiguration": map[string]any{"featureGates": w.gates, "disabledFeatureGates": w.gatesOff}}},
			"status": map[string]any{"observedKubeVirtVersion": w.version}}))
	}
	d := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		kubevirts: "KubeVirtList", instances: "VirtualMachineInstanceList"}, objects...)
	c := fake.NewClientset(append(w.objects(), more...)...)
	return New(w.config, &Cluster{Client: c, Dynamic: d, Pages: pagesOfFakes(c, d), Driver: driver})
}

// machineWith returns a VMI that names volumes, with a changed spec.
func machineWith(volumes string, spec map[string]any) []byte {
	domain := map[string]any{"memory": map[string]any{"guest": "1Gi"}, "devices": map[string]any{}}
	whole := map[string]any{"domain": domain}
	for k, v := range spec {
		if k == "domain" {
			for k, v := range v.(map[string]any) {
				domain[k] = v
			}
			continue
		}
		whole[k] = v
	}
	text, _ := json.Marshal(map[string]any{"metadata": map[string]any{"name": "vm", "namespace": "ns",
		"annotations": map[string]string{driver + "/volumes": volumes}}, "spec": whole})
	return text
}

func request(resource string, operation admissionv1.Operation, raw []byte) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{UID: "u", Namespace: "ns", Operation: operation, Object: runtime.RawExtension{Raw: raw},
		Resource: metav1.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: resource}}
}

// part returns a spec whose domain has the given part.
func part(name string, value map[string]any) map[string]any {
	return map[string]any{"domain": map[string]any{name: value}}
}

// volumes returns a spec that has the volume, under the name own, and file systems of these names.
func volumes(is map[string]any, files ...string) map[string]any {
	is["name"] = "own"
	filesystems := []any{}
	for _, f := range files {
		filesystems = append(filesystems, map[string]any{"name": f, "virtiofs": map[string]any{}})
	}
	s := part("devices", map[string]any{"filesystems": filesystems})
	s["volumes"] = []any{is}
	return s
}

func nic(name, binding string) map[string]any {
	return map[string]any{"name": name, binding: map[string]any{}}
}

func TestRefusals(t *testing.T) {
	edit := func(f func(w *world)) world { w := usual(); f(&w); return w }
	plugin := func(w *world) { w.config.API, w.config.PluginName, w.version = Plugin, "p", "v1.9.0" }
	for _, c := range []struct {
		world   world
		volumes string
		spec    map[string]any
		words   string
	}{
		{usual(), "data,models:ro", nil, ""},
		{usual(), "data", map[string]any{"evictionStrategy": "None", "architecture": "amd64", "nodeSelector": map[string]any{"kubernetes.io/hostname": "n1"}}, ""},
		{usual(), "Data", nil, "annotation stargate.csi.dev/volumes"},
		{usual(), "nowhere", nil, "there is no claim nowhere in namespace ns"},
		{usual(), "disk", nil, "claim disk is of ceph.example, and not of the CSI driver"},
		{usual(), "block", nil, "claim block has volumeMode Block"},
		{usual(), "leaving", nil, "claim leaving is being deleted"},
		{usual(), "models", nil, "write it as models:ro"},
		{usual(), "mine", nil, "claim mine is ReadWriteOnce, and VM owner has it"},
		{usual(), "either", nil, "claim either is ReadWriteOnce, and VM owner has it"},
		{usual(), "both", nil, "claim both is ReadWriteOnce, and VM owner has it"},
		{usual(), "written", nil, "claim written is ReadWriteOnce, and VM owner has it"},
		{usual(), "several", nil, ""},
		{usual(), "data:ro", nil, "claim data can be written to"},
		{usual(), "either:ro", nil, "claim either can be written to"},
		{usual(), "first:ro,made:ro", nil, ""},
		{usual(), "first", nil, "write it as first:ro"},
		{usual(), "made", nil, "write it as made:ro"},
		{usual(), "data,far", nil, "claim data is on node n1, and claim far on node n2"},
		{usual(), "lost", nil, "claim lost is on node n3, where the CSI driver stargate.csi.dev does not run"},
		{usual(), "data", map[string]any{"nodeSelector": map[string]any{"kubernetes.io/hostname": "n2"}}, "spec.nodeSelector asks for n2"},
		{usual(), "named", map[string]any{"nodeSelector": map[string]any{"kubernetes.io/hostname": "host-4.example"}}, ""},
		{usual(), "named", map[string]any{"nodeSelector": map[string]any{"kubernetes.io/hostname": "n4"}}, "claim named is on node n4, and spec.nodeSelector asks for n4"},
		{usual(), "data", volumes(map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "data"}}), "claim data is also under spec.volumes"},
		{usual(), "data,models:ro", volumes(map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "models", "readOnly": true}}), "claim models is also under spec.volumes"},
		{usual(), "data", volumes(map[string]any{"dataVolume": map[string]any{"name": "data"}}), "claim data is also under spec.volumes"},
		{usual(), "data", volumes(map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "disk"}}), ""},
		{usual(), "data", volumes(map[string]any{"containerDisk": map[string]any{"image": "data"}}), ""},
		{usual(), "data", volumes(map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "data"}}, "own"), ""}, // virtiofs
		{usual(), "data", volumes(map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "data"}}, "other"), "claim data is also under spec.volumes"},
		{usual(), "data", part("firmware", map[string]any{"uuid": strings.ToUpper(board)}), ""},
		{usual(), "data", part("firmware", map[string]any{"uuid": strings.ReplaceAll(board, "-", "")}), ""},
		{usual(), "data", part("firmware", map[string]any{"uuid": ""}), ""},
		{usual(), "data", part("firmware", map[string]any{"uuid": "my-machine"}), `uuid "my-machine" is no UUID`},
		{usual(), "data", part("firmware", map[string]any{"uuid": "00000000-0000-0000-0000-000000000000"}), "is no UUID"},
		{usual(), "data", map[string]any{"architecture": "arm64"}, "amd64 only"},
		{usual(), "data", map[string]any{"evictionStrategy": "LiveMigrateIfPossible"}, "set None"},
		{usual(), "data", map[string]any{"domain": map[string]any{"launchSecurity": map[string]any{"sev": map[string]any{}}}}, "encrypts"},
		{usual(), "data", map[string]any{"domain": map[string]any{"machine": map[string]any{"type": "virt"}}}, "set it to q35"},
		{usual(), "data", part("devices", map[string]any{"hostDevices": []any{map[string]any{"deviceName": "x", "name": "y"}}}), "hostDevices locks all memory"},
		{usual(), "data", part("devices", map[string]any{"gpus": []any{map[string]any{"deviceName": "x", "name": "y"}}}), "gpus locks all memory"},
		{usual(), "data", part("devices", map[string]any{"interfaces": []any{nic("default", "masquerade"), nic("fast", "sriov")}}), "fast (sriov) locks all memory"},
		{usual(), "data", part("devices", map[string]any{"interfaces": []any{nic("default", "masquerade")}, "gpus": []any{}}), ""},
		{usual(), "data", part("cpu", map[string]any{"realtime": map[string]any{}}), "cpu.realtime locks all memory"},
		{usual(), "data", part("cpu", map[string]any{"dedicatedCpuPlacement": true}), ""},
		{usual(), "data", part("memory", map[string]any{"reservedOverhead": map[string]any{"memLock": "Required"}}), "memLock locks all memory"},
		{usual(), "data", part("memory", map[string]any{"reservedOverhead": map[string]any{"memLock": "NotRequired"}}), ""},
		{edit(func(w *world) { w.version = "v1.7.2" }), "data", nil, "KubeVirt is v1.7.2, and v1.8 is needed"},
		{edit(func(w *world) { w.version = "" }), "data", nil, "there is no KubeVirt"},
		{edit(func(w *world) { w.gates = nil }), "data", nil, "feature gate Sidecar is not on"},
		{edit(func(w *world) { w.gatesOff = []any{"Sidecar"} }), "data", nil, "feature gate Sidecar is turned off"},
		{edit(func(w *world) { w.gatesOff = []any{"Plugins"} }), "data", nil, ""},
		{edit(func(w *world) { w.driver = false }), "data", nil, "there is no CSI driver"},
		{edit(plugin), "data", nil, ""},
		{edit(func(w *world) { plugin(w); w.version = "v1.8.4" }), "data", nil, "v1.9 is needed"},
		{edit(func(w *world) { plugin(w); w.gates = []any{"Sidecar"} }), "data", nil, "feature gate Plugins is not on"},
	} {
		r := c.world.reviewer(t)
		res := r.answer(context.Background(), request("virtualmachineinstances", admissionv1.Create, machineWith(c.volumes, c.spec)), r.Validate)
		switch {
		case c.words == "" && !res.Allowed:
			t.Errorf("%s: refused: %s", c.volumes, res.Result.Message)
		case c.words != "" && (res.Allowed || !strings.Contains(res.Result.Message, c.words) || !strings.HasPrefix(res.Result.Message, "stargate: ")):
			t.Errorf("%s: not refused with %q: %+v", c.volumes, c.words, res.Result)
		}
	}
}

// Only KubeVirt's controller may create a pod that names volumes. No user may change these names.
func TestPodsThatNameVolumes(t *testing.T) {
	const controller, words = "system:serviceaccount:kubevirt:kubevirt-controller", "is for the pods of VMs"
	pod := func(volumes string) []byte {
		named := ""
		if volumes != "" {
			named = `"` + driver + `/volumes":"` + volumes + `"`
		}
		return []byte(`{"metadata":{"name":"virt-launcher-vm-abcde","labels":{"kubevirt.io":"virt-launcher"},"annotations":{` + named + `}}}`)
	}
	without := usual()
	without.version = ""
	for _, c := range []struct {
		world   world
		user    string
		was, is string
		change  bool
		words   string
	}{
		{usual(), controller, "", "data", false, ""},
		{usual(), "system:serviceaccount:kubevirt:default", "", "data", false, words},
		{usual(), "system:serviceaccount:ns:kubevirt-controller", "", "data", false, words},
		{usual(), "alice", "", "data", false, words},
		{without, controller, "", "data", false, words},
		{usual(), "alice", "", "", false, ""},
		{usual(), "alice", "", "data", true, "cannot change"},
		{usual(), controller, "data", "more", true, "cannot change"},
		{usual(), "alice", "data", "data", true, ""},
		{usual(), "alice", "data", "", true, ""},
	} {
		q := request("pods", admissionv1.Create, pod(c.is))
		q.UserInfo.Username = c.user
		if c.change {
			q.Operation, q.OldObject.Raw = admissionv1.Update, pod(c.was)
		}
		r := c.world.reviewer(t)
		res := r.answer(context.Background(), q, r.Validate)
		if res.Allowed != (c.words == "") || !res.Allowed && !strings.Contains(res.Result.Message, c.words) {
			t.Errorf("%s, %q to %q: %+v", c.user, c.was, c.is, res)
		}
	}
}

func TestOthers(t *testing.T) {
	r := usual().reviewer(t)
	validate := func(q *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return r.answer(context.Background(), q, r.Validate)
	}
	change := request("virtualmachineinstances", admissionv1.Update, machineWith("data,far", nil))
	change.OldObject.Raw = machineWith("data", nil)
	if res := validate(change); res.Allowed || !strings.Contains(res.Result.Message, "cannot change") {
		t.Errorf("changed volumes of a VM that runs: %+v", res)
	}
	change.OldObject.Raw = change.Object.Raw
	if res := validate(change); !res.Allowed {
		t.Errorf("another change: %+v", res.Result)
	}
	for name, words := range map[string]string{"owner": "VM owner cannot migrate", "stranger": ""} {
		res := validate(request("virtualmachineinstancemigrations", admissionv1.Create, []byte(`{"spec":{"vmiName":"`+name+`"}}`)))
		if res.Allowed != (words == "") || words != "" && !strings.Contains(res.Result.Message, words) {
			t.Errorf("migration of %s: %+v", name, res)
		}
	}
	template := func(volumes string, spec map[string]any) *admissionv1.AdmissionResponse {
		return validate(request("virtualmachines", admissionv1.Create, []byte(fmt.Sprintf(`{"metadata":{"name":"vm"},"spec":{"template":%s}}`, machineWith(volumes, spec)))))
	}
	if res := template("data", nil); !res.Allowed || len(res.Warnings) != 0 {
		t.Errorf("template: %+v", res)
	}
	if res := template("later", nil); !res.Allowed || len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "no claim later") {
		t.Errorf("template whose claim does not exist yet: %+v", res)
	}
	if res := template("data", map[string]any{"domain": map[string]any{"memory": map[string]any{"guest": "1Gi", "maxGuest": "4Gi"}}}); res.Allowed ||
		!strings.Contains(res.Result.Message, "maxGuest is 4Gi") {
		t.Errorf("template with hotplug: %+v", res)
	}
}

// During an upgrade, the driver is not registered with kubelet for a while. The webhook accepts a
// VM in this time, and the VM's pod waits for the driver.
func TestDriverIsExchanged(t *testing.T) {
	r := usual().reviewer(t)
	for _, c := range []struct {
		volumes      string
		selector     map[string]any
		words, warns string
	}{
		{"soon", nil, "", "claim soon is on node n5, where the CSI driver stargate.csi.dev is not ready now"},
		{"soon", map[string]any{"nodeSelector": map[string]any{"kubernetes.io/hostname": "n1"}}, "spec.nodeSelector asks for n1", ""},
		{"lost", nil, "where the CSI driver stargate.csi.dev does not run", ""}, // a node without the driver's label
		{"data", nil, "", ""},
	} {
		machine := machineWith(c.volumes, c.selector)
		res := r.answer(context.Background(), request("virtualmachineinstances", admissionv1.Create, machine), r.Validate)
		if res.Allowed != (c.words == "") || !res.Allowed && !strings.Contains(res.Result.Message, c.words) ||
			(c.warns != "") != (len(res.Warnings) == 1) || c.warns != "" && !strings.Contains(res.Warnings[0], c.warns) {
			t.Errorf("%s: %+v", c.volumes, res)
		}
		vm := request("virtualmachines", admissionv1.Create, []byte(fmt.Sprintf(`{"metadata":{"name":"vm"},"spec":{"template":%s}}`, machine)))
		if res := r.answer(context.Background(), vm, r.Validate); !res.Allowed || (c.warns+c.words != "") != (len(res.Warnings) == 1) {
			t.Errorf("template with %s: %+v", c.volumes, res)
		}
	}
}

// Two drivers would use the same names for volumes of a pod and for devices of a domain.
func TestTwoDrivers(t *testing.T) {
	labels := func(name string) map[string]string { return map[string]string{"app.kubernetes.io/name": name} }
	r := usual().reviewer(t,
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "second.example", Labels: labels("stargate-csi")}},
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "ceph.example", Labels: labels("ceph-csi")}})
	for key, words := range map[string]string{
		"second.example/volumes": "annotations stargate.csi.dev/volumes and second.example/volumes: a VM can have volumes of only one driver",
		"ceph.example/volumes":   "", "nobody.example/volumes": "", "second.example/other": "",
	} {
		machine := bytes.Replace(machineWith("data", nil), []byte(`"annotations":{`), []byte(`"annotations":{"`+key+`":"x",`), 1)
		vm := []byte(fmt.Sprintf(`{"metadata":{"name":"vm"},"spec":{"template":%s}}`, machine))
		for _, q := range []*admissionv1.AdmissionRequest{request("virtualmachineinstances", admissionv1.Create, machine), request("virtualmachines", admissionv1.Create, vm)} {
			res := r.answer(context.Background(), q, r.Validate)
			if res.Allowed != (words == "") || !res.Allowed && !strings.Contains(res.Result.Message, words) {
				t.Errorf("%s, %s: %+v", q.Resource.Resource, key, res.Result)
			}
		}
	}
}

// The webhook warns of an annotation in an object from which KubeVirt does not copy annotations.
func TestMisplaced(t *testing.T) {
	r := usual().reviewer(t)
	for _, c := range []struct {
		template string
		warned   bool
	}{{`{"spec":{}}`, true}, {string(machineWith("data", nil)), false}} {
		text := `{"metadata":{"name":"vm","annotations":{"` + driver + `/volumes":"data"}},"spec":{"template":` + c.template + `}}`
		for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
			q := request("virtualmachines", operation, []byte(text))
			q.OldObject.Raw = []byte(`{"metadata":{"name":"vm"},"spec":{"template":` + c.template + `}}`)
			res := r.answer(context.Background(), q, r.Validate)
			if !res.Allowed || (len(res.Warnings) == 1 && strings.Contains(res.Warnings[0], "spec.template.metadata")) != c.warned {
				t.Errorf("%s %s: %+v", operation, c.template, res)
			}
		}
	}
}

// The webhook admits a change outside the template, even if the template or the cluster is invalid.
func TestChangedMachines(t *testing.T) {
	const other = `"labels":{"a":"b"},`
	w := usual()
	w.gates = nil
	r := w.reviewer(t)
	vm := func(metadata, running, volumes string, spec map[string]any) []byte {
		return []byte(fmt.Sprintf(`{"metadata":{%s"name":"vm"},"spec":{"runStrategy":%q,"template":%s}}`, metadata, running, machineWith(volumes, spec)))
	}
	arm := map[string]any{"architecture": "arm64"}
	was := vm("", "Always", "data", arm)
	for name, c := range map[string]struct {
		is    []byte
		words string
	}{
		"stopped":            {vm("", "Halted", "data", arm), ""},
		"labelled":           {vm(other, "Always", "data", arm), ""},
		"going away":         {vm(`"deletionTimestamp":"2026-01-01T00:00:00Z",`, "Always", "Data", nil), ""},
		"its claims":         {vm("", "Always", "data,models:ro", arm), "amd64 only"},
		"its architecture":   {vm("", "Always", "data", nil), "feature gate Sidecar is not on"},
		"no names of claims": {vm("", "Always", "Data", arm), "annotation"},
	} {
		q := request("virtualmachines", admissionv1.Update, c.is)
		q.OldObject.Raw = was
		res := r.answer(context.Background(), q, r.Validate)
		if res.Allowed != (c.words == "") || c.words != "" && !strings.Contains(res.Result.Message, c.words) {
			t.Errorf("%s: %+v", name, res.Result)
		}
	}
	if res := r.answer(context.Background(), request("virtualmachines", admissionv1.Create, was), r.Validate); res.Allowed {
		t.Error("the webhook does not review a new VM")
	}
}

// patched applies the webhook's patch to the object and returns the result.
func patched(t *testing.T, r *Reviewer, q *admissionv1.AdmissionRequest, into any) []byte {
	t.Helper()
	res := r.answer(context.Background(), q, r.Mutate)
	if !res.Allowed {
		t.Fatalf("refused: %s", res.Result.Message)
	}
	text := q.Object.Raw
	if res.Patch != nil {
		p, err := jsonpatch.DecodePatch(res.Patch)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = p.Apply(text); err != nil {
			t.Fatalf("%v: %s", err, res.Patch)
		}
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestMachine(t *testing.T) {
	r := usual().reviewer(t)
	m := &instance{}
	text := patched(t, r, request("virtualmachineinstances", admissionv1.Create,
		machineWith("data", map[string]any{"domain": map[string]any{"memory": map[string]any{"guest": "1Gi", "maxGuest": "4Gi"}}})), m)
	if *m.Spec.EvictionStrategy != "None" || m.Spec.Domain.Memory.MaxGuest.String() != "1Gi" {
		t.Errorf("%s", text)
	}
	const want = `[{"args":["--driver-name=stargate.csi.dev"],"command":["/usr/local/bin/stargate-hook"],"image":"img:1","imagePullPolicy":"IfNotPresent"}]`
	if m.Annotations[sidecarsKey] != want {
		t.Errorf("sidecars: %s", m.Annotations[sidecarsKey])
	}
	// The next release has another image, but its hook is the same.
	r.config.Image = "img:2"
	again := patched(t, r, request("virtualmachineinstances", admissionv1.Create, text), m)
	if !bytes.Equal(again, text) {
		t.Errorf("the second review returns %s", again)
	}
	other := bytes.Replace(text, []byte(`--driver-name=stargate.csi.dev`), []byte(`--driver-name=other.example`), 1)
	patched(t, r, request("virtualmachineinstances", admissionv1.Create, other), m)
	if n := strings.Count(m.Annotations[sidecarsKey], hookProgram); n != 2 {
		t.Errorf("beside another driver's hook: %s", m.Annotations[sidecarsKey])
	}
}

// KubeVirt migrates a VM to plug devices or processors into it.
func TestNothingPluggedIn(t *testing.T) {
	r := usual().reviewer(t)
	for _, c := range []struct {
		cpu  map[string]any
		want uint32
	}{
		{map[string]any{"sockets": 2, "maxSockets": 8}, 2}, {map[string]any{"cores": 4, "maxSockets": 4}, 1},
		{map[string]any{"sockets": 2, "maxSockets": 2}, 2}, {map[string]any{"cores": 4}, 0}, {map[string]any{"sockets": 4, "maxSockets": 2}, 2},
	} {
		m := &instance{}
		text := patched(t, r, request("virtualmachineinstances", admissionv1.Create, machineWith("data", map[string]any{"domain": map[string]any{"cpu": c.cpu}})), m)
		if m.Spec.Domain.CPU.MaxSockets != c.want {
			t.Errorf("%v: %s", c.cpu, text)
		}
	}
	patched(t, r, request("virtualmachineinstances", admissionv1.Create, machineWith("data", nil)), &instance{})
	for _, most := range []string{"", "512Mi", "1Gi", "4Gi"} {
		m, memory := &instance{}, map[string]any{"guest": "1Gi"}
		if most != "" {
			memory["maxGuest"] = most
		}
		text := patched(t, r, request("virtualmachineinstances", admissionv1.Create, machineWith("data", part("memory", memory))), m)
		if got := m.Spec.Domain.Memory.MaxGuest; got == nil || got.String() != "1Gi" {
			t.Errorf("maxGuest %q: %s", most, text)
		}
	}
}

// KubeVirt writes the cluster's evictionStrategy into VMs. The webhook treats this value as not
// set.
func TestEviction(t *testing.T) {
	w := usual()
	w.evicts = "LiveMigrate"
	r := w.reviewer(t)
	for written, words := range map[string]string{"LiveMigrate": "", "LiveMigrateIfPossible": "evictionStrategy is LiveMigrateIfPossible", "External": ""} {
		m := &instance{}
		text := patched(t, r, request("virtualmachineinstances", admissionv1.Create, machineWith("data", map[string]any{"evictionStrategy": written})), m)
		res := r.answer(context.Background(), request("virtualmachineinstances", admissionv1.Create, text), r.Validate)
		if res.Allowed != (words == "") || words != "" && !strings.Contains(res.Result.Message, words) {
			t.Errorf("%s: %+v", written, res.Result)
		}
		if is := *m.Spec.EvictionStrategy; (is == "None") != (written == w.evicts) {
			t.Errorf("%s has become %s", written, is)
		}
	}
}

// sidecar returns the hook's container that KubeVirt creates from the annotation.
func sidecar(image string) corev1.Container {
	return corev1.Container{Name: "hook-sidecar-0", Image: image, Command: []string{hookProgram}, Args: []string{"--driver-name=" + driver}}
}

func launcher(more ...corev1.Container) []byte {
	limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}
	text, _ := json.Marshal(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{driver + "/volumes": "data,models:ro"}},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: pluginSockets}}, Containers: append([]corev1.Container{
			{Name: compute, Resources: corev1.ResourceRequirements{Limits: limits, Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}}, more...)},
	})
	return text
}

func TestLauncher(t *testing.T) {
	w := usual()
	w.config.ZoneOfFiles = true
	r := w.reviewer(t)
	pod := &corev1.Pod{}
	// The previous release of the driver has reviewed this VM.
	other := corev1.Container{Name: "other", Image: "img:1", Args: []string{"--driver-name=" + driver}}
	text := patched(t, r, request("pods", admissionv1.Create, launcher(other, sidecar("img:0"))), pod)
	if v := pod.Spec.Volumes; len(v) != 3 || v[1].PersistentVolumeClaim.ClaimName != "data" || v[1].PersistentVolumeClaim.ReadOnly || !v[2].PersistentVolumeClaim.ReadOnly {
		t.Errorf("volumes: %+v", v)
	}
	for i, want := range map[int]int{0: 2, 1: 0, 2: 2} {
		c := pod.Spec.Containers[i]
		if len(c.VolumeMounts) != want || want > 0 && (c.VolumeMounts[0].MountPath != "/var/run/stargate/data" || c.VolumeMounts[0].ReadOnly || !c.VolumeMounts[1].ReadOnly) {
			t.Errorf("container %s: %+v", c.Name, c.VolumeMounts)
		}
	}
	res := pod.Spec.Containers[0].Resources
	// The limit grows by two volumes of 1Gi and their page tables. The request does not change.
	if res.Limits.Memory().Value() != 4<<30+4<<20 || res.Requests.Memory().String() != "1Gi" {
		t.Errorf("memory: %+v", res)
	}
	if again := patched(t, r, request("pods", admissionv1.Create, text), pod); !bytes.Equal(again, text) {
		t.Errorf("the second review returns %s", again)
	}
	if out := r.answer(context.Background(), request("pods", admissionv1.Create, launcher()), r.Mutate); out.Allowed || !strings.Contains(out.Result.Message, "has no hook") {
		t.Errorf("without a hook: %+v", out)
	}
}

// The webhook keeps fields of a later Kubernetes or KubeVirt that this program does not know, at
// any place in the pod.
func TestLaterFields(t *testing.T) {
	for _, api := range []string{Sidecar, Plugin} {
		w := usual()
		w.config.API, w.config.PluginName, w.config.ZoneOfFiles = api, "stargate-csi", true
		r := w.reviewer(t)
		var pod any
		own := sidecar("img:1")
		own.VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/own"}}
		if err := json.Unmarshal(launcher(own), &pod); err != nil {
			t.Fatal(err)
		}
		n := later(pod, "")
		text, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		is := &corev1.Pod{}
		got := patched(t, r, request("pods", admissionv1.Create, text), is)
		if left := strings.Count(string(got), laterField); n < 8 || left != n {
			t.Errorf("%s: %d unknown fields before the patch, and %d after it: %s", api, n, left, got)
		}
		if c := is.Spec.Containers; len(is.Spec.Volumes) != 3 || len(c[0].VolumeMounts) != 2 || len(c[1].VolumeMounts) != 3 ||
			c[0].Resources.Limits.Memory().Value() != 4<<30+4<<20 {
			t.Errorf("%s: %s", api, got)
		}
		if again := patched(t, r, request("pods", admissionv1.Create, got), is); !bytes.Equal(again, got) {
			t.Errorf("%s: the second review returns %s", api, again)
		}
	}
}

const laterField = "aFieldOfLater"

// later adds such a field to each object except annotations, limits and requests. It returns the
// number of added fields.
func later(of any, key string) (n int) {
	switch v := of.(type) {
	case []any:
		for _, one := range v {
			n += later(one, "")
		}
	case map[string]any:
		for k, one := range v {
			n += later(one, k)
		}
		if !slices.Contains([]string{"annotations", "limits", "requests"}, key) {
			v[laterField] = "kept"
			n++
		}
	}
	return n
}

// QEMU allocates a volume's complete file, including its reserve. The class has the size of the
// reserve, and the volume may have it, too.
func TestLauncherReserve(t *testing.T) {
	const many, gib = corev1.ReadWriteMany, int64(1) << 30
	classes := []runtime.Object{}
	for name, reserve := range map[string]string{"roomy": "3Gi", "odd": "some"} {
		classes = append(classes, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver,
			Parameters: map[string]string{"reserve": reserve}})
	}
	told, before := volumeOn("pv-told", "n1", many), volumeOn("pv-before", "n1", many)
	told.Spec.CSI.VolumeAttributes = map[string]string{"memory": fmt.Sprint(6 * gib)}
	grown := claimOf("grown", "pv-told", "roomy", many)
	grown.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("7Gi")}
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		own   int64
	}{
		"to be made":          {claimOf("c", "", "roomy", many), 4 * gib},
		"made":                {claimOf("c", "pv-told", "gone", many), 6 * gib},
		"made, and has grown": {grown, 7 * gib},
		"of an older driver":  {claimOf("c", "pv-before", "roomy", many), 4 * gib},
		"no quantity":         {claimOf("c", "", "odd", many), gib},
	} {
		for _, files := range []bool{true, false} {
			w := usual()
			w.config.ZoneOfFiles = files
			r := w.reviewer(t, append([]runtime.Object{c.claim, told, before}, classes...)...)
			want := 2*gib + c.own/512
			if files {
				want += c.own
			}
			text := bytes.Replace(launcher(sidecar("img:1")), []byte("data,models:ro"), []byte(c.claim.Name), 1)
			pod := &corev1.Pod{}
			patched(t, r, request("pods", admissionv1.Create, text), pod)
			if is := pod.Spec.Containers[0].Resources.Limits.Memory().Value(); is != want {
				t.Errorf("%s, files %v: a limit of %d bytes, and not %d", name, files, is, want)
			}
		}
	}
}

// A VM's own volumes may have any name and any claim. So such a volume does not show that an
// earlier review has completed the pod.
func TestOwnVolumes(t *testing.T) {
	r := usual().reviewer(t)
	for _, own := range []corev1.Volume{
		{Name: "stargate-0"}, {Name: volumeName(0)},
		{Name: volumeName(0), VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}}},
		// This disk has the driver's name and the first claim. The webhook must still add
		// its own volume.
		{Name: volumeName(0), VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
	} {
		pod := &corev1.Pod{}
		if err := json.Unmarshal(launcher(sidecar("img:1")), pod); err != nil {
			t.Fatal(err)
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, own)
		text, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		got := &corev1.Pod{}
		patched(t, r, request("pods", admissionv1.Create, text), got)
		if len(got.Spec.Volumes) != 4 || len(got.Spec.Containers[0].VolumeMounts) != 2 {
			t.Errorf("with the user's volume %+v, the pod has the volumes %+v", own, got.Spec.Volumes)
		}
		// An API server refuses two volumes of one name. Users are unlikely to choose the
		// driver's name.
		same := slices.IndexFunc(got.Spec.Volumes[2:], func(v corev1.Volume) bool { return v.Name == own.Name })
		if own.Name == "stargate-0" && same >= 0 {
			t.Errorf("%s is there twice", own.Name)
		}
	}
}

// starts reviews the pod of a VM. It expects a refusal that contains words. If words is empty, it
// expects no refusal.
func (r *Reviewer) starts(t *testing.T, name, volumes, words string) {
	t.Helper()
	pod, yes := &corev1.Pod{}, true
	if err := json.Unmarshal(launcher(sidecar("img:1")), pod); err != nil {
		t.Fatal(err)
	}
	pod.Annotations[driver+"/volumes"] = volumes
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "VirtualMachineInstance", Name: name, Controller: &yes}}
	text, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	res := r.answer(context.Background(), request("pods", admissionv1.Create, text), r.Mutate)
	if res.Allowed != (words == "") || words != "" && !strings.Contains(res.Result.Message, words) {
		t.Errorf("%s: %+v", name, res.Result)
	}
}

// has adds a VM to the cluster.
func (r *Reviewer) has(t *testing.T, name, made, id, volumes, phase string) {
	t.Helper()
	u := object("VirtualMachineInstance", "ns", name, map[string]any{
		"metadata": map[string]any{"uid": name, "creationTimestamp": made, "annotations": map[string]any{driver + "/volumes": volumes}},
		"spec":     map[string]any{"domain": map[string]any{"firmware": map[string]any{"uuid": id}}}, "status": map[string]any{"phase": phase}})
	if _, err := r.cluster.Dynamic.Resource(instances).Namespace("ns").Create(context.Background(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// launches creates a VM's pod.
func (r *Reviewer) launches(t *testing.T, name, volumes string) *corev1.Pod {
	t.Helper()
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "virt-launcher-" + name, Namespace: "ns", Labels: map[string]string{"kubevirt.io": "virt-launcher"},
		Annotations:     map[string]string{driver + "/volumes": volumes},
		OwnerReferences: []metav1.OwnerReference{{Kind: "VirtualMachineInstance", Name: name, Controller: &yes}}}}
	pod, err := r.cluster.Client.CoreV1().Pods("ns").Create(context.Background(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// A VM with a later time stamp may get its pod before the API server stores the VM with the earlier
// time stamp.
func TestStampedEarlierStoredLater(t *testing.T) {
	const first, second = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
	r := usual().reviewer(t, claimOf("tied", "", "stargate", corev1.ReadWriteOnce))
	r.has(t, "later", second, "", "tied", "Pending")
	r.starts(t, "later", "tied", "")
	pod := r.launches(t, "later", "tied")
	r.has(t, "earlier", first, "", "tied", "Pending")
	r.starts(t, "earlier", "tied", "VM later has it")
	r.starts(t, "later", "tied", "VM earlier has it") // a second pod of the same VM is refused, too
	delete(pod.Annotations, driver+"/volumes")        // as a user may do
	if _, err := r.cluster.Client.CoreV1().Pods("ns").Update(context.Background(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.starts(t, "earlier", "tied", "VM later has it")
	pod.Status.Phase = corev1.PodFailed
	if _, err := r.cluster.Client.CoreV1().Pods("ns").UpdateStatus(context.Background(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.starts(t, "earlier", "tied", "")
}

// Two VMs with one UUID may not write the same volume: on the volume, both would be one system.
func TestTwins(t *testing.T) {
	const first, second = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
	r := usual().reviewer(t)
	r.has(t, "original", first, strings.ToUpper(board), "far,data,first:ro", "Running")
	r.has(t, "over", first, board, "named", "Succeeded")
	r.has(t, "odd", first, "", "data", "Running")
	for _, c := range []struct{ name, volumes, id, words string }{
		{"copy", "data", board, "VM original has the same spec.domain.firmware.uuid, and claim data, too"},
		{"copy", "data", strings.ReplaceAll(board, "-", ""), "VM original has the same"},
		{"copy", "first:ro", board, ""}, {"copy", "lost", board, "n3"}, {"copy", "named", board, ""},
		{"copy", "data", "1b5e55ed-0000-4000-8000-00000000beef", ""}, {"copy", "data", "", ""},
		{"", "data", board, "VM original has the same"}, // a VM of a pool has no name yet
		{"original", "data", board, ""},                 // the next life of the same VM
	} {
		text := bytes.Replace(machineWith(c.volumes, part("firmware", map[string]any{"uuid": c.id})), []byte(`"name":"vm"`), []byte(`"name":"`+c.name+`"`), 1)
		res := r.answer(context.Background(), request("virtualmachineinstances", admissionv1.Create, text), r.Validate)
		if res.Allowed != (c.words == "") || c.words != "" && !strings.Contains(res.Result.Message, c.words) {
			t.Errorf("%+v: %+v", c, res.Result)
		}
		vm := []byte(fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"template":%s}}`, c.name, text))
		if res := r.answer(context.Background(), request("virtualmachines", admissionv1.Create, vm), r.Validate); !res.Allowed || (len(res.Warnings) == 1) != (c.words != "") {
			t.Errorf("template %+v: %+v", c, res)
		}
	}
	// Both VMs were created at the same time, and KubeVirt has set their UUIDs.
	r.has(t, "copy", second, board, "data", "Pending")
	r.starts(t, "copy", "data", "VM original has the same")
	r.starts(t, "original", "data", "")
	r.launches(t, "copy", "data")
	r.starts(t, "original", "data", "VM copy has the same")
}

// If two VMs were created at the same time, and neither review has seen the other VM, the first VM
// gets the claim.
func TestTwoAtOnce(t *testing.T) {
	r := usual().reviewer(t, claimOf("tied", "", "stargate", corev1.ReadWriteOnce))
	for _, m := range []struct{ name, uid, made, volumes string }{
		{"early", "9", "2026-01-01T00:00:00Z", "tied"}, {"one", "1", "2026-01-01T00:00:01Z", "tied"}, {"two", "2", "2026-01-01T00:00:01Z", "tied"},
		{"between", "3", "2026-01-01T00:00:02Z", "data"},
	} {
		u := object("VirtualMachineInstance", "ns", m.name, map[string]any{"metadata": map[string]any{"uid": m.uid, "creationTimestamp": m.made,
			"annotations": map[string]any{driver + "/volumes": m.volumes}}, "status": map[string]any{"phase": "Pending"}})
		if _, err := r.cluster.Dynamic.Resource(instances).Namespace("ns").Create(context.Background(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	starts := func(name, volumes, words string) {
		t.Helper()
		r.starts(t, name, volumes, words)
	}
	starts("early", "tied", "")
	starts("one", "tied", "VM early has it")
	starts("two", "tied", "VM early has it")
	starts("between", "data", "")
	starts("gone", "tied", "")
	if err := r.cluster.Dynamic.Resource(instances).Namespace("ns").Delete(context.Background(), "early", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	starts("one", "tied", "")
	starts("two", "tied", "VM one has it")
}

func TestPluginLauncher(t *testing.T) {
	w := usual()
	w.config.API, w.config.PluginName = Plugin, "stargate-csi"
	r := w.reviewer(t)
	pod := &corev1.Pod{}
	patched(t, r, request("pods", admissionv1.Create, launcher()), pod)
	c := pod.Spec.Containers[1]
	// KubeVirt refuses sidecars without a subPath.
	if c.Name != "stargate-hook" || c.VolumeMounts[0].SubPath != "stargate-csi" || c.VolumeMounts[0].MountPath != "/var/run/kubevirt-plugin/stargate-csi" ||
		len(c.VolumeMounts) != 3 || *c.SecurityContext.RunAsUser != 107 || c.Args[1] != "--socket=/var/run/kubevirt-plugin/stargate-csi/hook.sock" {
		t.Errorf("sidecar: %+v", c)
	}
	if limit := pod.Spec.Containers[0].Resources.Limits.Memory(); limit.Value() != 2<<30+4<<20 {
		t.Errorf("memory: %s", limit)
	}
	// This VM was created for sidecars. KubeVirt calls both hooks, so both containers mount the
	// claims.
	pod = &corev1.Pod{}
	patched(t, r, request("pods", admissionv1.Create, launcher(sidecar("img:0"))), pod)
	if all := pod.Spec.Containers; len(all) != 3 || len(all[1].VolumeMounts) != 2 || len(all[2].VolumeMounts) != 3 {
		t.Errorf("with a sidecar: %+v", all)
	}
}
