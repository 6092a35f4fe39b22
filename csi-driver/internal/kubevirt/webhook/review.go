// SPDX-License-Identifier: Apache-2.0

// Package webhook reviews VMs that name volumes, before the API server accepts them (D11). It
// refuses an object that cannot work, with a reason, and completes all other objects. The API
// server sends only objects that name volumes, because of the match conditions in the chart.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/kubevirt/annotation"
)

// KubeVirt's two interfaces for hooks.
const (
	Sidecar = "sidecar" // hook sidecars: all versions of KubeVirt
	Plugin  = "plugin"  // Plugin objects: KubeVirt 1.9 and later
)

// Config is the operator's configuration.
type Config struct {
	API         string
	Image       string
	PullPolicy  string
	PluginName  string
	ZoneOfFiles bool
}

// Reviewer reviews objects.
type Reviewer struct {
	config  Config
	cluster *Cluster
	room    *semaphore.Weighted // limits the bytes of reviews in memory
	values  *semaphore.Weighted // limits the values in these reviews
	reviews *prometheus.CounterVec
}

// New returns a reviewer.
func New(config Config, cluster *Cluster) *Reviewer {
	cluster.lists, cluster.objects = semaphore.NewWeighted(mostLists), semaphore.NewWeighted(mostObjects)
	return &Reviewer{config, cluster, semaphore.NewWeighted(mostBytes), semaphore.NewWeighted(mostValues), newReviews()}
}

// anew returns a reviewer for one request, with an empty cache.
func (r *Reviewer) anew() *Reviewer {
	one := *r
	one.cluster = r.cluster.anew()
	return &one
}

// answer is the webhook's answer to a request that it does not refuse.
type answer struct {
	patch    []operation
	warnings []string
}

// Mutate returns the patches that complete VMs and the pods of their launchers.
func (r *Reviewer) Mutate(ctx context.Context, q *admissionv1.AdmissionRequest) (answer, error) {
	r = r.anew()
	switch q.Resource.Resource {
	case "virtualmachineinstances":
		m := &instance{}
		if err := decode(q.Object.Raw, m); err != nil {
			return answer{}, err
		}
		wanted, err := annotation.Of(m.Annotations, r.cluster.Driver)
		if err != nil || wanted == nil {
			return answer{}, err
		}
		patch, err := r.machinePatch(ctx, m)
		return answer{patch: patch}, err
	case "pods":
		pod := &corev1.Pod{}
		if err := decode(q.Object.Raw, pod); err != nil {
			return answer{}, err
		}
		wanted, err := annotation.Of(pod.Annotations, r.cluster.Driver)
		if err != nil || wanted == nil {
			return answer{}, err
		}
		patch, err := r.podPatch(ctx, q.Namespace, pod, wanted)
		return answer{patch: patch}, err
	}
	return answer{}, nil
}

const migrations = "virtualmachineinstancemigrations"

// Validate refuses objects that cannot work.
func (r *Reviewer) Validate(ctx context.Context, q *admissionv1.AdmissionRequest) (answer, error) {
	r = r.anew()
	switch q.Resource.Resource {
	case "virtualmachines":
		return r.validateTemplate(ctx, q)
	case "virtualmachineinstances":
		warnings, err := r.validateInstance(ctx, q)
		return answer{warnings: warnings}, err
	case migrations:
		return answer{}, r.validateMigration(ctx, q)
	case "pods":
		return answer{}, r.validatePod(ctx, q)
	}
	return answer{}, nil
}

func (r *Reviewer) validateTemplate(ctx context.Context, q *admissionv1.AdmissionRequest) (answer, error) {
	vm := &virtualMachine{}
	if err := decode(q.Object.Raw, vm); err != nil {
		return answer{}, err
	}
	t := vm.Spec.Template
	if t == nil || vm.DeletionTimestamp != nil {
		return answer{}, nil
	}
	if lost := r.misplaced(vm); lost != "" {
		return answer{warnings: []string{lost}}, nil
	}
	if same, err := sameTemplate(q); err != nil || same {
		return answer{}, err
	}
	wanted, err := annotation.Of(t.Annotations, r.cluster.Driver)
	if err != nil || wanted == nil {
		return answer{}, err
	}
	if err := r.shape(t, wanted, true); err != nil {
		return answer{}, err
	}
	if err := r.ready(ctx, t); err != nil {
		return answer{}, err
	}
	// Claims may be created after the VM that names them, but must exist when it starts.
	t.Name = vm.Name
	warnings, err := r.claimsOf(ctx, q.Namespace, t, wanted)
	if err != nil {
		warnings = []string{"stargate: the VM could not start now: " + err.Error()}
	}
	return answer{warnings: warnings}, nil
}

// misplaced returns a warning about an annotation that has no effect. KubeVirt copies only the
// template's annotations to the VM.
func (r *Reviewer) misplaced(vm *virtualMachine) string {
	key := annotation.Annotation(r.cluster.Driver)
	_, here := vm.Annotations[key]
	_, there := vm.Spec.Template.Annotations[key]
	if !here || there {
		return ""
	}
	return "stargate: annotation " + key + " of a VirtualMachine itself gives its VM no volumes: write it into spec.template.metadata.annotations"
}

// sameTemplate reports whether an update does not change the template. A user who stops or labels a
// VM need not see problems of its template or of the cluster.
func sameTemplate(q *admissionv1.AdmissionRequest) (bool, error) {
	if q.Operation != admissionv1.Update {
		return false, nil
	}
	var is, was struct {
		Spec struct {
			Template any `json:"template"`
		} `json:"spec"`
	}
	if err := decode(q.Object.Raw, &is); err != nil {
		return false, err
	}
	if err := decode(q.OldObject.Raw, &was); err != nil {
		return false, err
	}
	return reflect.DeepEqual(is, was), nil
}

func (r *Reviewer) validateInstance(ctx context.Context, q *admissionv1.AdmissionRequest) (warnings []string, err error) {
	m, before := &instance{}, &instance{}
	if err := decode(q.Object.Raw, m); err != nil {
		return nil, err
	}
	if q.Operation == admissionv1.Update {
		if err := decode(q.OldObject.Raw, before); err != nil {
			return nil, err
		}
		key := annotation.Annotation(r.cluster.Driver)
		was, had := before.Annotations[key]
		is, has := m.Annotations[key]
		if m.DeletionTimestamp == nil && (was != is || had != has) {
			return nil, fmt.Errorf("annotation %s of a VM that runs cannot change: change the template, and restart the VM", key)
		}
		return nil, nil
	}
	wanted, err := annotation.Of(m.Annotations, r.cluster.Driver)
	if err != nil || wanted == nil {
		return nil, err
	}
	if err := r.shape(m, wanted, false); err != nil {
		return nil, err
	}
	if err := r.ready(ctx, m); err != nil {
		return nil, err
	}
	return r.claimsOf(ctx, q.Namespace, m, wanted)
}

// The name of KubeVirt's controller, in the namespace of KubeVirt.
const controllerAccount = "kubevirt-controller"

// validatePod checks that a pod with volumes belongs to a VM, and that KubeVirt's controller has
// made it. The driver gives only such a pod access to the memory of the volumes. So no other user
// may create such a pod, or change a pod into one.
func (r *Reviewer) validatePod(ctx context.Context, q *admissionv1.AdmissionRequest) error {
	key := annotation.Annotation(r.cluster.Driver)
	pod, before := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
	if err := decode(q.Object.Raw, pod); err != nil {
		return err
	}
	is, has := pod.Annotations[key]
	if !has {
		return nil
	}
	if q.Operation == admissionv1.Update {
		if err := decode(q.OldObject.Raw, before); err != nil {
			return err
		}
		if was, had := before.Annotations[key]; !had || was != is {
			return fmt.Errorf("annotation %s of a pod cannot change", key)
		}
		return nil
	}
	k, err := r.cluster.kubeVirt(ctx)
	if err != nil {
		return err
	}
	if k == nil || q.UserInfo.Username != "system:serviceaccount:"+k.Namespace+":"+controllerAccount {
		return fmt.Errorf("annotation %s is for the pods of VMs, which KubeVirt makes: leave it out, "+
			"and name the claim in spec.volumes", key)
	}
	return nil
}

func (r *Reviewer) validateMigration(ctx context.Context, q *admissionv1.AdmissionRequest) error {
	if q.Operation != admissionv1.Create {
		return nil
	}
	move := &migration{}
	if err := decode(q.Object.Raw, move); err != nil {
		return err
	}
	m, err := r.cluster.machine(ctx, q.Namespace, move.Spec.VMIName)
	if err != nil || m == nil {
		return err
	}
	if _, has := m.Annotations[annotation.Annotation(r.cluster.Driver)]; has {
		return fmt.Errorf("VM %s cannot migrate: its volumes are memory of its node", m.Name)
	}
	return nil
}

// respond converts an answer to the API server's type.
func respond(q *admissionv1.AdmissionRequest, a answer, err error) *admissionv1.AdmissionResponse {
	res := &admissionv1.AdmissionResponse{UID: q.UID, Allowed: err == nil, Warnings: a.warnings}
	if err != nil {
		res.Result = &metav1.Status{
			Status: metav1.StatusFailure, Message: "stargate: " + err.Error(), Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		}
		// The codes differ for clients: they do not retry an invalid object, but retry an
		// object that was not reviewed.
		if u := (unanswered{}); errors.As(err, &u) {
			res.Result.Reason, res.Result.Code = metav1.StatusReasonInternalError, http.StatusInternalServerError
		}
		return res
	}
	if len(a.patch) == 0 {
		return res
	}
	text, err := json.Marshal(a.patch)
	if err != nil {
		return respond(q, answer{}, err)
	}
	kind := admissionv1.PatchTypeJSONPatch
	res.Patch, res.PatchType = text, &kind
	return res
}

type review func(ctx context.Context, q *admissionv1.AdmissionRequest) (answer, error)

func (r *Reviewer) answer(ctx context.Context, q *admissionv1.AdmissionRequest, by review) *admissionv1.AdmissionResponse {
	a, err := by(ctx, q)
	klog.FromContext(ctx).V(2).Info("Review", "resource", q.Resource.Resource, "operation", q.Operation, "namespace", q.Namespace,
		"name", q.Name, "refused", err, "changes", len(a.patch))
	outcome := allowed
	if u := (unanswered{}); errors.As(err, &u) {
		outcome = unasked
	} else if err != nil {
		outcome = refused
	}
	r.reviews.WithLabelValues(outcome).Inc()
	return respond(q, a, err)
}
