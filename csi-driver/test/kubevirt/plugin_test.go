// SPDX-License-Identifier: Apache-2.0

//go:build kubevirt19

package kubevirt

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"
	pluginv1alpha1 "kubevirt.io/api/plugin/v1alpha1"
	"kubevirt.io/kubevirt/pkg/hooks"
	nodecel "kubevirt.io/kubevirt/pkg/plugins/cel"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/api"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/converter/translate"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/plugins"
	domaincel "kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/plugins/cel"
	"sigs.k8s.io/yaml"
)

var pluginFile = flag.String("plugin", "", "the chart's Plugin object")

// thePlugin returns the chart's Plugin.
func thePlugin(t *testing.T) pluginv1alpha1.Plugin {
	t.Helper()
	text, err := os.ReadFile(*pluginFile)
	if err != nil {
		t.Fatal(err)
	}
	var p pluginv1alpha1.Plugin
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlugin tests plugins of KubeVirt 1.9: its own pipeline, with the chart's Plugin object, its
// conditions and its socket.
func TestPlugin(t *testing.T) {
	p := thePlugin(t)
	if len(p.Spec.DomainHooks) != 1 || p.Spec.FailureStrategy != pluginv1alpha1.FailureStrategyFail {
		t.Fatalf("the plugin is another: %+v", p.Spec)
	}
	socket := p.Spec.DomainHooks[0].Sidecar.SocketPath
	if want := "/var/run/kubevirt-plugin/" + p.Name + "/"; filepath.Dir(socket)+"/" != want {
		t.Fatalf("socket %s is not in %s", socket, want)
	}
	startHook(t, lay(t, "data", "models", "logs"), socket)
	throughHook(t, "plugin", translated, func(spec *api.DomainSpec, vmi *v1.VirtualMachineInstance) (string, error) {
		_, text, err := plugins.ApplyDomainHooks([]pluginv1alpha1.Plugin{p}, vmi, spec, pluginv1alpha1.InvocationContextBoot)
		return text, err
	})
}

// TestPluginBehindSidecar uses a VM that was created for hook sidecars, and gets its pod when the
// Plugin exists. KubeVirt calls both hooks, and the result is the same as with one hook.
func TestPluginBehindSidecar(t *testing.T) {
	p := thePlugin(t)
	volumes := lay(t, "data", "models", "logs")
	startSidecar(t, 0, "stargate.csi.dev", "--volumes", volumes)
	startHook(t, volumes, p.Spec.DomainHooks[0].Sidecar.SocketPath)
	m := hooks.GetManager()
	if err := m.Collect(1, 30*time.Second); err != nil {
		t.Fatal(err)
	}
	throughHook(t, "both", translated, func(spec *api.DomainSpec, vmi *v1.VirtualMachineInstance) (string, error) {
		text, err := m.OnDefineDomain(spec, vmi)
		if err != nil {
			return "", err
		}
		_, text, err = plugins.ApplyDomainHooks([]pluginv1alpha1.Plugin{p}, vmi, again(t, text), pluginv1alpha1.InvocationContextBoot)
		return text, err
	})
}

// translated returns the domain after a conversion by libvirtxml, which KubeVirt makes in this
// version.
func translated(t *testing.T, spec *api.DomainSpec) string {
	t.Helper()
	d, err := translate.ToLibvirtDomain(spec)
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPluginMigration(t *testing.T) {
	p := thePlugin(t)
	startHook(t, lay(t, "data"), p.Spec.DomainHooks[0].Sidecar.SocketPath)
	vmi := machines(t)["minimal"]
	_, _, err := plugins.ApplyDomainHooks([]pluginv1alpha1.Plugin{p}, vmi, convert(t, vmi, false), pluginv1alpha1.InvocationContextMigrationTarget)
	if err == nil || !strings.Contains(err.Error(), "cannot migrate") {
		t.Errorf("it migrates: %v", err)
	}
}

// TestPluginConditions checks that the Plugin does not change VMs without the annotation, and needs
// no socket for them.
func TestPluginConditions(t *testing.T) {
	p := thePlugin(t)
	vmi := machines(t)["minimal"]
	vmi.Annotations = nil
	if _, _, err := plugins.ApplyDomainHooks([]pluginv1alpha1.Plugin{p}, vmi, convert(t, vmi, false), pluginv1alpha1.InvocationContextBoot); err != nil {
		t.Errorf("a VM without volumes: %v", err)
	}
	if err := domaincel.GetEvaluator().CompileCondition(p.Spec.Condition); err != nil {
		t.Errorf("condition: %v", err)
	}
	node, err := nodecel.NewEvaluator()
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range p.Spec.NodeHooks {
		for _, c := range []struct {
			vmi  *v1.VirtualMachineInstance
			want bool
		}{{vmi, false}, {machines(t)["minimal"], true}} {
			got, err := node.EvaluateCondition(h.Condition, map[string]any{"vmi": c.vmi})
			if err != nil || got != c.want {
				t.Errorf("node hook %d: %v, %v", i, got, err)
			}
		}
	}
}
