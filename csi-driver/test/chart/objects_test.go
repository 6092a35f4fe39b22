// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// object is an object of the chart. It has a Go type of Kubernetes, or is an
// *unstructured.Unstructured of another project.
type object interface {
	metav1.Object
	runtime.Object
}

// others are the API groups of other projects. kubeconform checks the objects of these groups by
// schemas.
var others = []string{"monitoring.coreos.com", "snapshot.storage.k8s.io", "cert-manager.io", "plugin.kubevirt.io"}

var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, storagev1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// decode reads manifests as strictly as an API server. Errors are an unknown kind, an unknown or
// repeated key, a value of another type, and a number or quantity that cannot be parsed.
func decode(text string) ([]object, error) {
	var all []object
	err := each(text, func(one []byte) error {
		u := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(one, &u.Object); err != nil {
			return fmt.Errorf("%w: %s", err, one)
		}
		if slices.Contains(others, u.GroupVersionKind().Group) {
			all = append(all, u)
			return nil
		}
		typed, _, err := decoder.Decode(one, nil, nil)
		if err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		all = append(all, typed.(object))
		return nil
	})
	return all, err
}

var onlyComments = regexp.MustCompile(`^(\s*(#.*)?\n?)*$`)

// each calls a function with each document that does not consist only of comments.
func each(text string, do func(one []byte) error) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		one, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && !onlyComments.Match(one) {
			err = do(one)
		}
		if err != nil {
			return err
		}
	}
}

// list returns the objects of one type, in the order of their names.
func list[T object](r *rendering) []T {
	var found []T
	for _, o := range r.objects {
		if one, is := o.(T); is {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return found
}

// get returns the object of this type and name. There must be exactly one.
func get[T object](t *testing.T, r *rendering, name string) T {
	t.Helper()
	var found []T
	for _, one := range list[T](r) {
		if one.GetName() == name {
			found = append(found, one)
		}
	}
	if len(found) != 1 {
		var none T
		t.Fatalf("%s has %d objects %T %s", r.name, len(found), none, name)
	}
	return found[0]
}

// kinds returns the kind of each object.
func kinds(r *rendering) []string {
	var found []string
	for _, o := range r.objects {
		found = append(found, o.GetObjectKind().GroupVersionKind().Kind)
	}
	return found
}

// other returns the only object of a kind of another project, as a T.
func other[T any](t *testing.T, r *rendering, kind string) T {
	t.Helper()
	var shaped T
	found := 0
	for _, one := range list[*unstructured.Unstructured](r) {
		if one.GetKind() != kind {
			continue
		}
		found++
		text, err := json.Marshal(one.Object)
		if err == nil {
			err = json.Unmarshal(text, &shaped)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if found != 1 {
		t.Fatalf("%s has %d of kind %s", r.name, found, kind)
	}
	return shaped
}

// pod is a Pod, or the template of pods in another object.
type pod struct {
	owner  string // kind and name of the owner
	labels map[string]string
	spec   corev1.PodSpec
}

func pods(r *rendering) []pod {
	var found []pod
	for _, o := range r.objects {
		var made corev1.PodTemplateSpec
		switch o := o.(type) {
		case *appsv1.DaemonSet:
			made = o.Spec.Template
		case *appsv1.Deployment:
			made = o.Spec.Template
		case *batchv1.Job:
			made = o.Spec.Template
		case *corev1.Pod:
			made = corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
		default:
			continue
		}
		owner := o.GetObjectKind().GroupVersionKind().Kind + " " + o.GetName()
		found = append(found, pod{owner, made.Labels, made.Spec})
	}
	return found
}

const driverSet = "DaemonSet rel-csi"

// podOf returns the pod of the given owner.
func podOf(t *testing.T, r *rendering, owner string) pod {
	t.Helper()
	for _, p := range pods(r) {
		if p.owner == owner {
			return p
		}
	}
	t.Fatalf("%s has no %s", r.name, owner)
	return pod{}
}

// all returns a pod's containers, init containers included.
func (p pod) all() []corev1.Container {
	return slices.Concat(p.spec.InitContainers, p.spec.Containers)
}

// container returns a pod's container with the given name.
func container(t *testing.T, r *rendering, owner, name string) corev1.Container {
	t.Helper()
	for _, c := range podOf(t, r, owner).all() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("%s: %s has no container %s", r.name, owner, name)
	return corev1.Container{}
}

// mounted returns a container's mount at this path, or nil.
func mounted(c corev1.Container, path string) *corev1.VolumeMount {
	for _, m := range c.VolumeMounts {
		if m.MountPath == path {
			return &m
		}
	}
	return nil
}

// hostPaths returns the paths of the node that a pod has, with their types.
func (p pod) hostPaths() map[string]string {
	found := map[string]string{}
	for _, v := range p.spec.Volumes {
		if v.HostPath != nil {
			found[v.HostPath.Path] = string(*v.HostPath.Type)
		}
	}
	return found
}

// rules parses RBAC rules in YAML.
func rules(t *testing.T, text string) []rbacv1.PolicyRule {
	t.Helper()
	var found []rbacv1.PolicyRule
	if err := yaml.UnmarshalStrict(bytes.TrimSpace([]byte(text)), &found); err != nil {
		t.Fatal(err)
	}
	return found
}
