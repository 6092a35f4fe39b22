// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"stargate/csi-driver/internal/nodemeta"
)

// Cluster reads objects of the cluster for reviews. Each review queries the API server again:
// reviews are rare, and must not use stale objects. One review sends each query once, because
// several rules check each of up to 16 claims.
type Cluster struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	Pages   pages
	Driver  string

	lists   *semaphore.Weighted // limits the lists of all reviews at the same time
	objects *semaphore.Weighted // limits the reads of single objects in the same way
	answers map[string]any      // replies to this review, by query; nil: not cached
}

// Connect returns a Cluster without client-go's limit of five requests a second. Under that limit,
// reviews would wait until the API server gives up. On a node that boots, VMs would prevent each
// other from starting. The API server limits its clients itself (priority and fairness).
func Connect(config *rest.Config, driver string) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return &Cluster{Client: client, Dynamic: objects, Pages: pagesOf(client.CoreV1().RESTClient()), Driver: driver}, nil
}

// anew returns a Cluster for one review, with an empty cache.
func (c *Cluster) anew() *Cluster {
	one := *c
	one.answers = map[string]any{}
	return &one
}

// ask returns the reply to a query. It sends the query to the API server only if the review has not
// cached the reply. Callers must not change the reply.
func ask[T any](c *Cluster, question string, by func() (T, error)) (T, error) {
	if had, ok := c.answers[question].(T); ok {
		return had, nil
	}
	is, err := by()
	if err != nil {
		var none T
		return none, unanswered{question, err}
	}
	if c.answers != nil {
		c.answers[question] = is
	}
	return is, nil
}

// unanswered is the error of a query to which the API server did not reply. The reviewed object may
// be valid.
type unanswered struct {
	question string
	error
}

func (u unanswered) Error() string {
	return fmt.Sprintf("the API server did not answer, try again: %s: %v", u.question, u.error)
}

func (u unanswered) Unwrap() error { return u.error }

// found returns the object, or nil if the API server does not have it.
func found[T any](is *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return is, err
}

var (
	kubevirts = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "kubevirts"}
	instances = schema.GroupVersionResource{Group: "kubevirt.io", Version: "v1", Resource: "virtualmachineinstances"}
)

// Every release of this chart sets this label on its CSIDriver object.
const (
	chartLabel = "app.kubernetes.io/name"
	chartName  = "stargate-csi"
)

// KubeVirt sets this label on launchers' pods. Their owner has this kind.
const (
	launcherLabel = "kubevirt.io=virt-launcher"
	instanceKind  = "VirtualMachineInstance"
)

func convert(u *unstructured.Unstructured, into any) error {
	text, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// mostKubeVirts limits the KubeVirt objects that a review reads. KubeVirt itself refuses a second
// KubeVirt object.
const mostKubeVirts = 8

// kubeVirt returns the installation of KubeVirt, or nil if there is none. KubeVirt writes its
// version only into the object from which it was installed. Users may create other KubeVirt
// objects.
func (c *Cluster) kubeVirt(ctx context.Context) (*kubevirt, error) {
	return ask(c, "KubeVirt's configuration", func() (*kubevirt, error) {
		list, err := c.Dynamic.Resource(kubevirts).List(ctx, metav1.ListOptions{Limit: mostKubeVirts})
		if err != nil || len(list.Items) == 0 {
			return nil, err
		}
		at := slices.IndexFunc(list.Items, func(u unstructured.Unstructured) bool {
			version, _, _ := unstructured.NestedString(u.Object, "status", "observedKubeVirtVersion")
			return version != ""
		})
		k := &kubevirt{}
		return k, convert(&list.Items[max(at, 0)], k)
	})
}

// machine returns the fields of a VM that type listed has, and whether the VM has volumes. It
// returns nil if the VM does not exist.
func (c *Cluster) machine(ctx context.Context, namespace, name string) (*instance, error) {
	return ask(c, "VM "+name, func() (*instance, error) {
		l, err := readOne[listed](ctx, c, kubeVirtPath, namespace, instances.Resource, name)
		if err != nil || l == nil {
			return nil, err
		}
		return l.instance(c.Driver), nil
	})
}

// claim returns a claim, or nil if it does not exist.
func (c *Cluster) claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return ask(c, "claim "+name, func() (*corev1.PersistentVolumeClaim, error) {
		a, err := readOne[claimed](ctx, c, corePath, namespace, "persistentvolumeclaims", name)
		if err != nil || a == nil {
			return nil, err
		}
		return a.claim(), nil
	})
}

// class returns a claim's class. It returns nil if the claim names no class, or if the class does
// not exist.
func (c *Cluster) class(ctx context.Context, p *corev1.PersistentVolumeClaim) (*storagev1.StorageClass, error) {
	if p.Spec.StorageClassName == nil || *p.Spec.StorageClassName == "" {
		return nil, nil
	}
	return ask(c, "class "+*p.Spec.StorageClassName, func() (*storagev1.StorageClass, error) {
		return found(c.Client.StorageV1().StorageClasses().Get(ctx, *p.Spec.StorageClassName, metav1.GetOptions{}))
	})
}

// origin describes a claim's volume. The volume may not exist yet.
type origin struct {
	driver string // the CSI driver that creates or has created it; "": none yet
	node   string // the node that has it; "": none yet
	modes  []corev1.PersistentVolumeAccessMode
	memory int64 // memory of the volume, as the driver reports it; 0: not known
}

// is reports whether mode is the access mode that kubelet uses: the first mode in the list.
func (o origin) is(mode corev1.PersistentVolumeAccessMode) bool {
	return len(o.modes) > 0 && o.modes[0] == mode
}

func (o origin) readersOnly() bool { return o.is(corev1.ReadOnlyMany) }

func (c *Cluster) origin(ctx context.Context, p *corev1.PersistentVolumeClaim) (origin, error) {
	if p.Spec.VolumeName != "" {
		return c.made(ctx, p)
	}
	s, err := c.class(ctx, p)
	if err != nil || s == nil {
		return origin{modes: p.Spec.AccessModes}, err
	}
	return origin{driver: s.Provisioner, modes: p.Spec.AccessModes}, nil
}

// made returns the origin of a claim that is bound to a volume. A volume that an administrator has
// created manually may have other access modes than the claim.
func (c *Cluster) made(ctx context.Context, p *corev1.PersistentVolumeClaim) (origin, error) {
	v, err := ask(c, "volume "+p.Spec.VolumeName+" of claim "+p.Name, func() (*corev1.PersistentVolume, error) {
		return c.Client.CoreV1().PersistentVolumes().Get(ctx, p.Spec.VolumeName, metav1.GetOptions{})
	})
	if err != nil {
		return origin{}, err
	}
	o := origin{node: c.nodeOf(v), modes: v.Spec.AccessModes}
	if v.Spec.CSI != nil {
		o.driver = v.Spec.CSI.Driver
		// This driver writes a number. Any other value counts as unknown.
		o.memory, _ = strconv.ParseInt(v.Spec.CSI.VolumeAttributes[nodemeta.MemoryAttribute], 10, 64)
	}
	return o, nil
}

// reserve returns the size of the reserve that a claim's class adds to its volumes.
func (c *Cluster) reserve(ctx context.Context, p *corev1.PersistentVolumeClaim) (int64, error) {
	s, err := c.class(ctx, p)
	if err != nil || s == nil {
		return 0, err
	}
	q, err := resource.ParseQuantity(s.Parameters[nodemeta.ReserveParameter])
	if err != nil {
		return 0, nil // no reserve, or an invalid one, which the driver refuses
	}
	return max(q.Value(), 0), nil
}

// memory returns the bytes that a VM maps of a claim's volume: its size and its reserve.
func (c *Cluster) memory(ctx context.Context, p *corev1.PersistentVolumeClaim) (int64, error) {
	q := p.Spec.Resources.Requests[corev1.ResourceStorage]
	if has, there := p.Status.Capacity[corev1.ResourceStorage]; there {
		q = has
	}
	size := q.Value()
	if p.Spec.VolumeName != "" {
		o, err := c.made(ctx, p)
		if err != nil {
			return 0, err
		}
		if o.memory > 0 {
			return max(size, o.memory), nil
		}
	}
	// The volume does not exist yet, or an earlier release has created it.
	more, err := c.reserve(ctx, p)
	return size + more, err
}

// nodeOf returns the node in the volume's topology, or an empty string.
func (c *Cluster) nodeOf(v *corev1.PersistentVolume) string {
	if v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
		return ""
	}
	for _, term := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if e.Key == nodemeta.Topology(c.Driver) && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
				return e.Values[0]
			}
		}
	}
	return ""
}

// served reports whether the driver is registered with a node's kubelet.
func (c *Cluster) served(ctx context.Context, node string) (bool, error) {
	n, err := ask(c, "drivers of node "+node, func() (*storagev1.CSINode, error) {
		return found(c.Client.StorageV1().CSINodes().Get(ctx, node, metav1.GetOptions{}))
	})
	if err != nil || n == nil {
		return false, err
	}
	return slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == c.Driver }), nil
}

// host returns a node, or nil if it does not exist.
func (c *Cluster) host(ctx context.Context, node string) (*corev1.Node, error) {
	return ask(c, "node "+node, func() (*corev1.Node, error) {
		return found(c.Client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}))
	})
}

// drivers returns the cluster's CSI drivers by name. The value is true if this chart has installed
// the driver.
func (c *Cluster) drivers(ctx context.Context) (map[string]bool, error) {
	return ask(c, "CSI drivers", func() (map[string]bool, error) {
		list, err := c.Client.StorageV1().CSIDrivers().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		ours := map[string]bool{}
		for i := range list.Items {
			ours[list.Items[i].Name] = list.Items[i].Labels[chartLabel] == chartName
		}
		return ours, nil
	})
}
