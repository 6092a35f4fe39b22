// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"stargate/csi-driver/internal/kubevirt/annotation"
	"stargate/csi-driver/internal/machineid"
)

// A namespace's users decide how many VMs and pods it has, and how large these objects are. Any pod
// can make the webhook list them. So the webhook reads a list in pages, and holds one object of a
// page in memory at a time. It keeps only the VMs that share a claim with the reviewed VM.
const (
	pageSize = 200
	// A review lists VMs, and then pods. This many reviews may list at the same time; other
	// reviews wait.
	mostLists = 4
	// This many reviews may read single claims or VMs at the same time. Each object takes up to
	// 4 MiB. All VMs of a node start together when the node boots, and their reviews must not
	// wait long.
	mostObjects = 16
	// At most 64 systems can write a volume, so a VM cannot share its volumes with more VMs
	// than this.
	mostSharers = 64 * annotation.Most
)

// The formats in which an API server sends objects. A pod's metadata is much smaller than the pod.
const (
	whole    = "application/json"
	metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

// pages requests one page of a list, or one object, and returns the API server's text.
type pages func(ctx context.Context, of, form string, query url.Values) (io.ReadCloser, error)

// pagesOf returns the function that sends such requests to an API server.
func pagesOf(c rest.Interface) pages {
	return func(ctx context.Context, of, form string, query url.Values) (io.ReadCloser, error) {
		request := c.Get().AbsPath(of).SetHeader("Accept", form)
		for name, values := range query {
			for _, value := range values {
				request.Param(name, value)
			}
		}
		return request.Stream(ctx)
	}
}

// each passes all objects of a list to take, and stops when take returns an error.
func each[T any](ctx context.Context, get pages, of, form string, query url.Values, take func(*T) error) error {
	query.Set("limit", strconv.Itoa(pageSize))
	for {
		body, err := get(ctx, of, form, query)
		if err != nil {
			return err
		}
		next, err := page(body, take)
		err = errors.Join(err, body.Close())
		if err != nil || next == "" {
			return err
		}
		query.Set("continue", next)
	}
}

// page reads the objects of a page one by one, and returns the token for the next page.
func page[T any](body io.Reader, take func(*T) error) (next string, err error) {
	d := json.NewDecoder(body)
	if err := expect(d, '{'); err != nil {
		return "", err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return "", err
		}
		switch key {
		case "metadata":
			var m metav1.ListMeta
			if err := d.Decode(&m); err != nil {
				return "", err
			}
			next = m.Continue
		case "items":
			if err := items(d, take); err != nil {
				return "", err
			}
		default:
			var other json.RawMessage
			if err := d.Decode(&other); err != nil {
				return "", err
			}
		}
	}
	return next, expect(d, '}')
}

func items[T any](d *json.Decoder, take func(*T) error) error {
	if begins, err := d.Token(); err != nil || begins == nil {
		return err // null is an empty list
	} else if begins != json.Delim('[') {
		return fmt.Errorf("a list of objects begins with %v", begins)
	}
	for d.More() {
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		if err := take(&one); err != nil {
			return err
		}
	}
	return expect(d, ']')
}

func expect(d *json.Decoder, delim json.Delim) error {
	is, err := d.Token()
	if err == nil && is != delim {
		err = fmt.Errorf("%v in place of %v", is, delim)
	}
	return err
}

// listed has the fields of a VM or of a launcher's pod that the reviews of other VMs need.
type listed struct {
	Metadata struct {
		Name    string                  `json:"name"`
		UID     types.UID               `json:"uid"`
		Created metav1.Time             `json:"creationTimestamp"`
		Notes   map[string]string       `json:"annotations"`
		Owners  []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		Domain struct {
			Firmware *struct {
				UUID string `json:"uuid,omitempty"`
			} `json:"firmware"`
		} `json:"domain"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// sharer is a VM that shares a claim with the reviewed VM.
type sharer struct {
	name    string
	uid     types.UID
	created metav1.Time
	uuid    string
	claims  []annotation.Claim
}

// shares returns the claims of a listed object that are also in wanted. An object with an invalid
// annotation has no volumes, because the webhook refuses such objects.
func (l *listed) shares(driver string, wanted map[string]bool) []annotation.Claim {
	theirs, err := annotation.Of(l.Metadata.Notes, driver)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(theirs, func(c annotation.Claim) bool { return !wanted[c.Name] })
}

// over reports whether a VM or a pod has ended.
func (l *listed) over() bool { return l.Status.Phase == "Succeeded" || l.Status.Phase == "Failed" }

func (l *listed) sharer(claims []annotation.Claim) sharer {
	s := sharer{name: l.Metadata.Name, uid: l.Metadata.UID, created: l.Metadata.Created, claims: claims}
	if l.Spec.Domain.Firmware != nil {
		s.uuid, _ = machineid.Canonical(l.Spec.Domain.Firmware.UUID) // an invalid UUID matches no VM, and may be long
	}
	return s
}

// instance converts a listed object to a VM that has only these fields.
func (l *listed) instance(driver string) *instance {
	m := &instance{}
	m.Name, m.UID, m.CreationTimestamp = l.Metadata.Name, l.Metadata.UID, l.Metadata.Created
	m.Spec.Domain.Firmware = l.Spec.Domain.Firmware
	if _, has := l.Metadata.Notes[annotation.Annotation(driver)]; has {
		m.Annotations = map[string]string{annotation.Annotation(driver): ""} // callers do not read the annotation's text
	}
	return m
}

// segment checks a part of a URL's path. Any client can send a review, so a name in it may be any
// text.
func segment(what, name string) error {
	if wrong := path.IsValidPathSegmentName(name); name == "" || len(wrong) > 0 {
		return fmt.Errorf("%.63q is no %s", name, what)
	}
	return nil
}

// readOne reads an object into the fields of T. It returns nil if the object does not exist. Users
// decide how large an object is, so readOne waits while too many reviews read one.
func readOne[T any](ctx context.Context, c *Cluster, group, namespace, resource, name string) (*T, error) {
	if err := errors.Join(segment("namespace", namespace), segment("name", name)); err != nil {
		return nil, err
	}
	if err := c.objects.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("too many reviews at once: %w", err)
	}
	defer c.objects.Release(1)
	body, err := c.Pages(ctx, group+"/namespaces/"+namespace+"/"+resource+"/"+name, whole, url.Values{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	is := new(T)
	err = json.NewDecoder(body).Decode(is)
	return is, errors.Join(err, body.Close())
}

// claimed holds the fields of a claim that reviews read.
type claimed struct {
	Metadata struct {
		Name     string       `json:"name"`
		Deletion *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Spec struct {
		Volume    string                              `json:"volumeName"`
		Class     *string                             `json:"storageClassName"`
		Mode      *corev1.PersistentVolumeMode        `json:"volumeMode"`
		Modes     []corev1.PersistentVolumeAccessMode `json:"accessModes"`
		Resources struct {
			Requests storage `json:"requests"`
		} `json:"resources"`
	} `json:"spec"`
	Status struct {
		Capacity storage `json:"capacity"`
	} `json:"status"`
}

type storage struct {
	Storage *resource.Quantity `json:"storage"`
}

func (s storage) list() corev1.ResourceList {
	if s.Storage == nil {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceStorage: *s.Storage}
}

func (a *claimed) claim() *corev1.PersistentVolumeClaim {
	p := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: a.Metadata.Name, DeletionTimestamp: a.Metadata.Deletion}}
	p.Spec.VolumeName, p.Spec.StorageClassName, p.Spec.VolumeMode = a.Spec.Volume, a.Spec.Class, a.Spec.Mode
	p.Spec.AccessModes = slices.Clone(a.Spec.Modes[:min(len(a.Spec.Modes), 1)]) // origin.is reads only the first mode
	p.Spec.Resources.Requests, p.Status.Capacity = a.Spec.Resources.Requests.list(), a.Status.Capacity.list()
	return p
}

// kubeVirtPath is the start of the URL paths of KubeVirt's objects.
var kubeVirtPath = "/apis/" + instances.Group + "/" + instances.Version

// The start of the URL paths of pods and claims.
const corePath = "/api/v1"

// list passes all objects of a resource in a namespace to take. It waits while too many other
// reviews list objects.
func (c *Cluster) list(ctx context.Context, group, namespace, resource, form string, query url.Values, take func(*listed) error) error {
	if err := segment("namespace", namespace); err != nil {
		return err
	}
	if err := c.lists.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("too many reviews at once: %w", err)
	}
	defer c.lists.Release(1)
	return each(ctx, c.Pages, group+"/namespaces/"+namespace+"/"+resource, form, query, take)
}

// sharers returns the VMs of a namespace that have not ended and share a claim that the reviewed VM
// can write. Any number of VMs may read a volume. All calls during one review pass the same claims.
func (c *Cluster) sharers(ctx context.Context, namespace string, wanted []annotation.Claim) ([]sharer, error) {
	return ask(c, "VMs of namespace "+namespace, func() ([]sharer, error) {
		all, writes := []sharer{}, map[string]bool{}
		for _, w := range wanted {
			writes[w.Name] = !w.ReadOnly
		}
		err := c.list(ctx, kubeVirtPath, namespace, instances.Resource, whole, url.Values{}, func(l *listed) error {
			claims := l.shares(c.Driver, writes)
			if len(claims) == 0 || l.over() {
				return nil
			}
			if all = append(all, l.sharer(claims)); len(all) > mostSharers {
				return fmt.Errorf("more than %d VMs have the same claims: delete some of them", mostSharers)
			}
			return nil
		})
		return all, err
	})
}

// launched returns the VMs of a list whose launcher's pod has not ended.
func (c *Cluster) launched(ctx context.Context, namespace string, of []sharer) (map[string]bool, error) {
	return ask(c, "launchers of namespace "+namespace, func() (map[string]bool, error) {
		names, sought := map[string]bool{}, map[string]bool{}
		for i := range of {
			sought[of[i].name] = true
		}
		query := url.Values{"labelSelector": {launcherLabel}, "fieldSelector": {"status.phase!=Succeeded,status.phase!=Failed"}}
		err := c.list(ctx, corePath, namespace, "pods", metadata, query, func(l *listed) error {
			for i := range l.Metadata.Owners {
				if o := &l.Metadata.Owners[i]; o.Controller != nil && *o.Controller && o.Kind == instanceKind && sought[o.Name] {
					names[o.Name] = true
				}
			}
			return nil
		})
		return names, err
	})
}
