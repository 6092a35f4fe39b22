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

	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"stargate/csi-driver/internal/kubevirt/annotation"
)

// Users of a namespace decide how many VMs and pods it has, and how large these are. Any pod can make
// the webhook list them. So a list arrives in pages, one object of a page is in memory at a
// time, and little of it is kept: the VMs that share a claim with the reviewed one.
const (
	pageSize = 200
	// A review lists VMs, and then pods. This many reviews do so at once, and others wait.
	mostLists = 4
	// The same for claims and for VMs that are read one by one.
	mostObjects = 4
	// A volume has up to 64 systems, so more VMs than this cannot have it.
	mostSharers = 256
)

// pages returns one page of a list, or an object, as the API server sends it.
type pages func(ctx context.Context, of string, query url.Values) (io.ReadCloser, error)

// pagesOf asks an API server.
func pagesOf(c rest.Interface) pages {
	return func(ctx context.Context, of string, query url.Values) (io.ReadCloser, error) {
		request := c.Get().AbsPath(of).SetHeader("Accept", "application/json")
		for name, values := range query {
			for _, value := range values {
				request.Param(name, value)
			}
		}
		return request.Stream(ctx)
	}
}

// each passes all objects of a list to take, and stops at an error of it.
func each[T any](ctx context.Context, get pages, of string, query url.Values, take func(*T) error) error {
	query.Set("limit", strconv.Itoa(pageSize))
	for {
		body, err := get(ctx, of, query)
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

// page reads a page object by object, and returns the mark of the next one.
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

// listed has the fields of a VM or of a launcher's pod that reviews of others need.
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

// sharer is a VM that names a claim that the reviewed VM names.
type sharer struct {
	name    string
	uid     types.UID
	created metav1.Time
	uuid    string
	claims  []annotation.Claim
}

// shares returns the claims of a listed object, if one of them is wanted. An object with an invalid
// annotation has no volumes, because the webhook refuses it.
func (l *listed) shares(driver string, wanted []annotation.Claim) []annotation.Claim {
	theirs, err := annotation.Of(l.Metadata.Notes, driver)
	if err != nil {
		return nil
	}
	for _, c := range theirs {
		if slices.ContainsFunc(wanted, func(w annotation.Claim) bool { return w.Name == c.Name }) {
			return theirs
		}
	}
	return nil
}

// over reports whether a VM or a pod has ended.
func (l *listed) over() bool { return l.Status.Phase == "Succeeded" || l.Status.Phase == "Failed" }

func (l *listed) sharer(claims []annotation.Claim) sharer {
	s := sharer{name: l.Metadata.Name, uid: l.Metadata.UID, created: l.Metadata.Created, claims: claims}
	if l.Spec.Domain.Firmware != nil {
		s.uuid = l.Spec.Domain.Firmware.UUID
	}
	return s
}

// instance returns a VM with the fields of listed.
func (l *listed) instance(driver string) *instance {
	m := &instance{}
	m.Name, m.UID, m.CreationTimestamp = l.Metadata.Name, l.Metadata.UID, l.Metadata.Created
	m.Spec.Domain.Firmware = l.Spec.Domain.Firmware
	if _, has := l.Metadata.Notes[annotation.Annotation(driver)]; has {
		m.Annotations = map[string]string{annotation.Annotation(driver): ""} // its text is not read
	}
	return m
}

// segment checks a part of a path. A review comes from any client, so a name in it may be anything.
func segment(what, name string) error {
	if wrong := path.IsValidPathSegmentName(name); name == "" || len(wrong) > 0 {
		return fmt.Errorf("%.63q is no %s", name, what)
	}
	return nil
}

// object returns an object with the fields of listed.
func (c *Cluster) object(ctx context.Context, group, namespace, resource, name string) (*listed, error) {
	if err := errors.Join(segment("namespace", namespace), segment("name", name)); err != nil {
		return nil, err
	}
	body, err := c.Pages(ctx, group+"/namespaces/"+namespace+"/"+resource+"/"+name, url.Values{})
	if err != nil {
		return nil, err
	}
	l := &listed{}
	err = json.NewDecoder(body).Decode(l)
	return l, errors.Join(err, body.Close())
}

// kubeVirtPath begins the paths of KubeVirt's objects.
var kubeVirtPath = "/apis/" + instances.Group + "/" + instances.Version

// list passes all objects of a resource in a namespace to take, once few enough other reviews do so.
func (c *Cluster) list(ctx context.Context, group, namespace, resource string, query url.Values, take func(*listed) error) error {
	if err := segment("namespace", namespace); err != nil {
		return err
	}
	if err := c.lists.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("too many reviews at once: %w", err)
	}
	defer c.lists.Release(1)
	return each(ctx, c.Pages, group+"/namespaces/"+namespace+"/"+resource, query, take)
}

// sharers returns the VMs of a namespace that have not ended, and that share a claim with the
// reviewed one. All questions of a review are about the same claims.
func (c *Cluster) sharers(ctx context.Context, namespace string, wanted []annotation.Claim) ([]sharer, error) {
	return ask(c, "VMs of namespace "+namespace, func() ([]sharer, error) {
		all := []sharer{}
		err := c.list(ctx, kubeVirtPath, namespace, instances.Resource, url.Values{}, func(l *listed) error {
			claims := l.shares(c.Driver, wanted)
			if claims == nil || l.over() {
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

// launched returns the names of the VMs that share a claim, and that have a launcher's pod that has
// not ended.
func (c *Cluster) launched(ctx context.Context, namespace string, wanted []annotation.Claim) (map[string]bool, error) {
	return ask(c, "launchers of namespace "+namespace, func() (map[string]bool, error) {
		names := map[string]bool{}
		query := url.Values{"labelSelector": {launcherLabel}}
		err := c.list(ctx, "/api/v1", namespace, "pods", query, func(l *listed) error {
			if l.over() || l.shares(c.Driver, wanted) == nil {
				return nil
			}
			for i := range l.Metadata.Owners {
				if o := &l.Metadata.Owners[i]; o.Controller != nil && *o.Controller && o.Kind == instanceKind {
					names[o.Name] = true
				}
			}
			if len(names) > mostSharers {
				return fmt.Errorf("more than %d VMs have the same claims: delete some of them", mostSharers)
			}
			return nil
		})
		return names, err
	})
}
