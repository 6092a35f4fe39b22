// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/client-go/rest"
)

const folder = home + "/charts/stargate"

// oldest is the oldest version of Kubernetes that the chart supports. Helm's default is a newer
// version.
var oldest = sync.OnceValue(func() string {
	c, err := loader.LoadDir(folder)
	if err != nil {
		panic(err)
	}
	version, whole := strings.CutSuffix(strings.TrimPrefix(c.Metadata.KubeVersion, ">="), "-0")
	if !whole {
		panic("Chart.yaml: kubeVersion is " + c.Metadata.KubeVersion)
	}
	return version
})

// version returns the chart's appVersion, which is the default tag of images.
func version() string {
	c, err := loader.LoadDir(folder)
	if err != nil {
		panic(err)
	}
	return c.Metadata.AppVersion
}

// settings are the arguments of `helm template rel charts/stargate`.
type settings struct {
	values  values.Options
	kube    string   // version of Kubernetes; the oldest, if empty
	server  string   // URL of the API server for lookup; lookup finds nothing, if empty
	upgrade bool     // --is-upgrade
	apis    []string // --api-versions
}

// set returns settings with the given pairs for --set.
func set(pairs ...string) settings { return settings{values: values.Options{Values: pairs}} }

// texts returns settings with the given pairs for --set-string.
func texts(pairs ...string) settings {
	return settings{values: values.Options{StringValues: pairs}}
}

// cluster returns the address of an API server to Helm. Helm calls no other method of the
// interface.
type cluster struct {
	action.RESTClientGetter
	url string
}

func (c cluster) ToRESTConfig() (*rest.Config, error) {
	return &rest.Config{Host: c.url, QPS: -1}, nil
}

// install returns the release that `helm install` would create.
func install(s settings) (*release.Release, error) {
	c, err := loader.LoadDir(folder)
	if err != nil {
		return nil, err
	}
	given, err := s.values.MergeValues(nil)
	if err != nil {
		return nil, err
	}
	if s.kube == "" {
		s.kube = oldest()
	}
	version, err := chartutil.ParseKubeVersion(s.kube)
	if err != nil {
		return nil, err
	}
	config := &action.Configuration{Log: func(string, ...any) {}}
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace = "rel", "ns"
	install.ClientOnly, install.DryRun, install.DryRunOption, install.Replace = true, true, "true", true
	install.KubeVersion, install.APIVersions, install.IsUpgrade = version, s.apis, s.upgrade
	if s.server != "" {
		install.DryRunOption = "server"
		config.RESTClientGetter = cluster{url: s.server}
	}
	return install.Run(c, given)
}

// template returns the output of `helm template`.
func template(s settings) (string, error) {
	r, err := install(s)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(r.Manifest) + "\n"
	for _, h := range r.Hooks {
		text += fmt.Sprintf("---\n# Source: %s\n%s\n", h.Path, h.Manifest)
	}
	return text, nil
}

// renderings are the settings that tests share. The tests render each of them only once.
var renderings = map[string]settings{
	"dax":  set("zone.kind=dax"),
	"file": set("zone.kind=file"),
	"none": set("zone.kind=none"),
	// A zone of files without mounts for pods, and with other values of the keeper.
	"memory": set("zone.kind=file", "mount=none"),
	"fuse": set("zone.kind=file", "mount=fuse", "driverName=other.example", "keeper.workers=8", "keeper.serverMemory=1Gi",
		"keeper.resources.limits.memory=64Mi", "nodeSelector.pool=fast", "imagePullSecrets[0].name=secret"),
	// There are three ways to load the module. The operator loads it, or the pod loads it, or
	// the pod loads it but uses only modules that the nodes already have.
	"own":   set("zone.kind=dax", "module.manage=none"),
	"load":  set("zone.kind=dax", "module.manage=load"),
	"nodes": set("zone.kind=dax", "module.prebuilt=false"),
	"placed": set("zone.kind=dax", "onceTolerations[0].key=storage-only", "nodeSelector.pool=fast",
		`nodeSelector.kubernetes\.io/arch=amd64`),
	"classes": set("storageClasses[0].name=kept", "storageClasses[0].reclaimPolicy=Retain",
		"storageClasses[1].name=first", "storageClasses[2].name=second"),
	"kept": set("storageClasses[0].name=kept", "storageClasses[0].reclaimPolicy=Retain"),
	"more": set("zone.kind=dax", "allowHostSplice=true", "metrics.podMonitor.enabled=true", "metrics.rules.enabled=true",
		"metrics.dashboard.enabled=true", "metrics.dashboard.namespace=monitoring",
		"metrics.dashboard.labels.team=storage", "commonLabels.owner=all",
		"storageClasses[0].name=fast", "storageClasses[0].default=true",
		"storageClasses[0].parameters.alignment=1Gi",
		"sidecars.resizer.enabled=false", "driverName=other.example",
		"image.digest=sha256:"+strings.Repeat("0", 64), "imagePullSecrets[0].name=secret"),
	"monitored": set("zone.kind=dax", "datasets.enabled=true", "kubevirt.enabled=true", "metrics.podMonitor.enabled=true",
		"metrics.rules.enabled=true", "driverName=other.example"),
	// Without quotes, YAML parses digits as a number.
	"gone": texts("goneZones={0123456789abcdef,1111222233334444}"),
	"suid": set("allowSuidDev=true", "storageClasses[0].name=a", "storageClasses[0].mountOptions[0]=suid"),
	"snapshots": set("zone.kind=dax", "sidecars.snapshotter.enabled=true", "snapshotClasses[0].name=held",
		"snapshotClasses[0].default=true", "snapshotClasses[0].deletionPolicy=Retain",
		"snapshotClasses[0].parameters.snapshotTarget=either", "zone.snapshotDir=/var/lib/snapshots"),
	"linked": set("metrics.rules.enabled=true",
		"metrics.rules.runbooks=https://runbooks.example/kubernetes.md"),
	"datasets": set("datasets.enabled=true", "datasets.hosts[0]=*.models.example", "datasets.hosts[1]=registry.example", "datasets.ports[0]=443",
		"datasets.ports[1]=5000", "datasets.nodeQuota=64Gi", "datasets.namespaceQuota=16Gi", "datasets.grace=1h",
		"datasets.secrets[0].namespace=models", "datasets.secrets[0].names[0]=hub", "datasets.secrets[0].names[1]=store"),
	"inline": set("inlineVolumes.enabled=true", "inlineVolumes.parameters.rootOwner=1000:107",
		"inlineVolumes.parameters.lease=never"),
	"owner": set("inlineVolumes.enabled=true", "inlineVolumes.parameters.rootOwner=1000640000:4294967294",
		"storageClasses[0].name=a", "storageClasses[0].parameters.rootOwner=1000640000:1000640000"),
	"bare": set("zone.kind=dax", "metrics.port=0", "storageClasses=null", "tellCluster=false",
		"uninstall.refuseWithVolumes=false", "kubevirt.leaveMachines=true"),
	"unmarked": set("tellCluster=false"),
	"sidecar": set("kubevirt.enabled=true", "zone.kind=file", "sidecars.snapshotter.enabled=true",
		"apiServerPorts={7443,443}"),
	"plugin": set("kubevirt.enabled=true", "kubevirt.api=plugin", "kubevirt.webhook.certManager.enabled=true",
		"kubevirt.webhook.certManager.issuer=ours", "driverName=other.example",
		"kubevirt.hookImage.repository=hook", "kubevirt.webhook.tolerations[0].key=machines-only"),
	"openshift": {apis: []string{"security.openshift.io/v1/SecurityContextConstraints"}},
	"group":     {values: values.Options{ValueFiles: []string{"testdata/group.yaml"}}},
}

// rendering is the rendered chart.
type rendering struct {
	name, text string
	objects    []object
}

var done sync.Map

// rendered returns the rendering with the given name, with its objects decoded strictly.
func rendered(t *testing.T, name string) *rendering {
	t.Helper()
	s, known := renderings[name]
	if !known {
		t.Fatalf("there is no rendering %s", name)
	}
	once, _ := done.LoadOrStore(name, sync.OnceValues(func() (*rendering, error) {
		text, err := template(s)
		if err != nil {
			return nil, err
		}
		objects, err := decode(text)
		checked.Add(2)
		return &rendering{name, text, objects}, err
	}))
	r, err := once.(func() (*rendering, error))()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// forEachZone runs a test for each kind of zone.
func forEachZone(t *testing.T, test func(t *testing.T, r *rendering)) {
	t.Helper()
	for _, kind := range []string{"dax", "file", "none"} {
		t.Run("zone of kind "+kind, func(t *testing.T) { test(t, rendered(t, kind)) })
	}
}

// readFile returns the text of a file of the source tree.
func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(home, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
