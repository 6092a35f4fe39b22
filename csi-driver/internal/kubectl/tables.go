// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"stargate/csi-driver/internal/nodemeta"
)

// Zone is the state of a node that runs the driver.
type Zone struct {
	Node    string `json:"node"`
	Kind    string `json:"kind"`
	Size    int64  `json:"size"`
	Largest int64  `json:"largest"` // size of the largest volume that can be made
	Volumes int    `json:"volumes"`
	Module  string `json:"module,omitempty"` // state of the module on the node
	State   string `json:"state"`            // Ready, or the reason why the node offers no volumes
}

// Zones returns all nodes that run the driver or have volumes.
func (f *Facts) Zones() []Zone {
	zones := []Zone{}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		d := on(f.Drivers, n.Name)
		if d == nil && !f.serves(n.Name) {
			continue
		}
		z := Zone{Node: n.Name, Kind: "-", Module: n.Annotations[nodemeta.Module(f.Driver)], State: "Ready"}
		if d != nil {
			z.Kind = cmp.Or(argument(d, "zone-kind"), z.Kind)
		}
		z.Size, _ = f.size(n)
		z.Largest, _ = f.largest(n.Name)
		for j := range f.Volumes {
			if f.nodeOf(&f.Volumes[j]) == n.Name {
				z.Volumes++
			}
		}
		if problems := f.checkNode(n); len(problems) > 0 {
			z.State = problems[0].Problem
		} else if z.Size == 0 {
			z.State = "no zone"
		}
		zones = append(zones, z)
	}
	return zones
}

// Volume is a PersistentVolume of the driver.
type Volume struct {
	Namespace string   `json:"namespace"`
	Claim     string   `json:"claim"`
	Node      string   `json:"node"`
	Size      int64    `json:"size"`
	Pods      []string `json:"pods"`
	Phase     string   `json:"phase"`
	Name      string   `json:"name"` // name of the volume in the zone
	Object    string   `json:"persistentVolume"`
}

// VolumesOf returns the volumes of the claims of a namespace, or all volumes if the namespace is
// empty.
func (f *Facts) VolumesOf(namespace string) []Volume {
	volumes := []Volume{}
	for i := range f.Volumes {
		v := &f.Volumes[i]
		r := v.Spec.ClaimRef
		if r == nil {
			r = &corev1.ObjectReference{}
		}
		if namespace != "" && r.Namespace != namespace {
			continue
		}
		size := v.Spec.Capacity[corev1.ResourceStorage]
		volumes = append(volumes, Volume{
			Namespace: r.Namespace, Claim: r.Name, Node: f.nodeOf(v), Size: size.Value(), Pods: append([]string{}, f.users(r.Namespace, r.Name)...),
			Phase: string(v.Status.Phase), Name: inZone(v), Object: v.Name,
		})
	}
	slices.SortFunc(volumes, func(a, b Volume) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Object, b.Object))
	})
	return volumes
}

// PrintZones prints a table.
func PrintZones(out io.Writer, zones []Zone) error {
	t := newTable(out, "NODE", "KIND", "SIZE", "LARGEST", "VOLUMES", "MODULE", "STATE")
	for _, z := range zones {
		t.row(z.Node, z.Kind, printSize(z.Size), printSize(z.Largest), fmt.Sprint(z.Volumes), cmp.Or(z.Module, "-"), z.State)
	}
	return t.end()
}

// PrintVolumes prints a table.
func PrintVolumes(out io.Writer, volumes []Volume) error {
	t := newTable(out, "NAMESPACE", "CLAIM", "NODE", "SIZE", "STATUS", "VOLUME", "PODS")
	for _, v := range volumes {
		t.row(cmp.Or(v.Namespace, "-"), cmp.Or(v.Claim, "-"), cmp.Or(v.Node, "-"), printSize(v.Size), v.Phase, v.Name, cmp.Or(strings.Join(v.Pods, ","), "-"))
	}
	return t.end()
}

// PrintFindings prints each problem with its command.
func PrintFindings(out io.Writer, found []Finding) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(out, "No problem found.")
		return err
	}
	for _, one := range found {
		if _, err := fmt.Fprintf(out, "%s: %s\n    %s\n", clean(one.Subject), clean(one.Problem), clean(one.Command)); err != nil {
			return err
		}
	}
	return nil
}

// PrintJSON prints any of these values as JSON.
func PrintJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

type table struct{ w *tabwriter.Writer }

func newTable(out io.Writer, heads ...string) *table {
	t := &table{tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)}
	t.row(heads...)
	return t
}

func (t *table) row(cells ...string) {
	for i := range cells {
		cells[i] = clean(cells[i])
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t *table) end() error { return t.w.Flush() }

// clean replaces control characters: users write messages and names of Events, and a terminal would
// execute the control characters.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == ' ' {
			return r
		}
		return '?'
	}, s)
}

// printSize prints a size as kubectl does.
func printSize(bytes int64) string {
	if bytes == 0 {
		return "0"
	}
	if bytes%mebi != 0 && bytes > mebi {
		bytes -= bytes % mebi
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}
