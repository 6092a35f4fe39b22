// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
)

// Runner runs a program in a container. The result is an error with CodeExitError if the program
// fails.
type Runner interface {
	Run(ctx context.Context, pod *corev1.Pod, container string, command []string, out, errs io.Writer) error
}

// Exec runs programs as kubectl exec does.
type Exec struct {
	Config *rest.Config
	Client kubernetes.Interface
}

// Run uses a WebSocket, or SPDY where a proxy or an old API server refuses WebSockets.
func (e Exec) Run(ctx context.Context, pod *corev1.Pod, container string, command []string, out, errs io.Writer) error {
	url := e.Client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	old, err := remotecommand.NewSPDYExecutor(e.Config, "POST", url)
	if err != nil {
		return err
	}
	modern, err := remotecommand.NewWebSocketExecutor(e.Config, "GET", url.String())
	if err != nil {
		return err
	}
	both, err := remotecommand.NewFallbackExecutor(modern, old, func(error) bool { return ctx.Err() == nil })
	if err != nil {
		return err
	}
	return both.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: out, Stderr: errs})
}

// place is where the tools in a driver's pod find a volume.
type place struct {
	pod   *corev1.Pod
	path  string // device or file
	mount string // directory, if kubelet has mounted the volume for a pod
}

// place returns the place of a claim's volume.
func (f *Facts) place(namespace, claim string) (place, error) {
	c := f.claim(namespace, claim)
	if c == nil {
		return place{}, fmt.Errorf("there is no claim %s in namespace %s", claim, namespace)
	}
	v := f.volume(c)
	if v == nil {
		return place{}, fmt.Errorf("claim %s has no volume of %s: run kubectl stargate doctor pvc/%s", claim, f.Driver, claim)
	}
	node := f.nodeOf(v)
	d := on(f.Drivers, node)
	if d == nil {
		return place{}, fmt.Errorf("node %s has the volume, and does not run the driver", node)
	}
	p := place{pod: d}
	switch kind := argument(d, "zone-kind"); kind {
	case "dax":
		p.path = path.Join("/dev", argument(d, "zone"), inZone(v))
	case "file":
		p.path = path.Join(argument(d, "zone-dir"), inZone(v)+".stargate")
	default:
		return place{}, fmt.Errorf("node %s has a zone of kind %q: this plugin does not know where its volumes are", node, kind)
	}
	// kubelet names the staging directory of a volume in this way
	handle := fmt.Sprintf("%x", sha256.Sum256([]byte(v.Spec.CSI.VolumeHandle)))
	p.mount = path.Join(argument(d, "kubelet-dir"), "plugins/kubernetes.io/csi", f.Driver, handle, "globalmount")
	return p, nil
}

// SystemsOptions are the options of Systems.
type SystemsOptions struct{ JSON, Open bool }

// Systems shows the systems that use a claim's volume.
func (f *Facts) Systems(ctx context.Context, run Runner, namespace, claim string, o SystemsOptions, out, errs io.Writer) error {
	p, err := f.place(namespace, claim)
	if err != nil {
		return err
	}
	command := []string{"stargatectl", "systems"}
	if o.JSON {
		command = append(command, "--json")
	}
	if o.Open {
		command = append(command, "--open")
	}
	return run.Run(ctx, p.pod, driverProg, append(command, p.path), out, errs)
}

// Fence fences a system of a claim's volume. The argument system is a slot, a name, or the UUID of
// a VM. In a zone of reserved memory, Fence runs the tool on the mount in the driver's pod, because
// only the mount can remove the memory of a VM. In a zone of files the module mounts nothing.
func (f *Facts) Fence(ctx context.Context, run Runner, namespace, claim, system string, force bool, out, errs io.Writer) error {
	p, err := f.place(namespace, claim)
	if err != nil {
		return err
	}
	if system == "" || system[0] == '-' {
		return errors.New("name the system by its slot, its name or the UUID of its VM, as kubectl stargate systems shows it")
	}
	where := p.path
	if argument(p.pod, "zone-kind") == "dax" && len(f.running(namespace, claim)) > 0 {
		where = p.mount
	}
	command := []string{"stargatectl", "systems", where, "fence", system}
	if force {
		command = append(command, "--force")
	}
	return run.Run(ctx, p.pod, driverProg, command, out, errs)
}

// running returns the pods that use a claim on their node.
func (f *Facts) running(namespace, claim string) (names []string) {
	for _, name := range f.users(namespace, claim) {
		for i := range f.Pods {
			if p := &f.Pods[i]; p.Namespace == namespace && p.Name == name && p.Status.Phase == corev1.PodRunning {
				names = append(names, name)
			}
		}
	}
	return names
}
