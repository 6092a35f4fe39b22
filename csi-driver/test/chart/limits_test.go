// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"flag"
	"io"
	"strings"
	"testing"

	"stargate/csi-driver/internal/app"
	"stargate/csi-driver/internal/csi/request"
)

// driverTakes parses and checks flags like the driver at its start.
func driverTakes(flags []string) error {
	var c app.Config
	set := flag.NewFlagSet("stargate-csi", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	c.Flags(set)
	if err := set.Parse(flags); err != nil {
		return err
	}
	return c.Check()
}

// same checks that chart and driver both accept a value, or both refuse it. If only the chart
// accepted a value, the driver would exit on each node, or refuse each claim.
func same(t *testing.T, taken bool, driverSays error, pairs ...string) {
	t.Helper()
	_, err := template(texts(pairs...))
	check(t, (driverSays == nil) == taken, "%q: the driver takes it: %v (%v)", pairs, driverSays == nil, driverSays)
	check(t, (err == nil) == taken, "%q: the chart takes it: %v (%v)", pairs, err == nil, err)
}

func TestChartAndDriverTakeTheSame(t *testing.T) {
	type row struct {
		name, value string
		taken       bool
	}
	cases := func(t *testing.T, what string, rows []row, each func(t *testing.T, r row)) {
		t.Run(what, func(t *testing.T) {
			for _, r := range rows {
				t.Run(strings.TrimSpace(r.name+" "+r.value), func(t *testing.T) { each(t, r) })
			}
		})
	}
	cases(t, "the size of a volume", []row{
		{"", "1Mi", false}, {"", "16Mi", true}, {"", "64Ti", true}, {"", "65Ti", false}, {"", "99999999999999999999Ti", false},
	}, func(t *testing.T, r row) {
		same(t, r.taken, driverTakes([]string{"--node=n", "--default-size=" + r.value}), "defaultSize="+r.value)
	})
	cases(t, "quotas of data sets", []row{
		{"quota", "16Mi", true}, {"quota", "64Ti", true}, {"namespace-quota", "1Gi", true},
	}, func(t *testing.T, r row) {
		key := map[string]string{"quota": "datasets.nodeQuota", "namespace-quota": "datasets.namespaceQuota"}[r.name]
		same(t, r.taken, driverTakes([]string{"--node=n", "--cluster", "--datasets", "--dataset-" + r.name + "=" + r.value}), key+"="+r.value)
	})
	cases(t, "a zone of files", []row{
		{"size", "15Mi", false}, {"size", "16Mi", true}, {"size", "17Mi", false}, {"size", "4030Ti", true}, {"size", "4095Ti", false},
		{"base", "1Gi", false}, {"base", "4Gi", true}, {"base", "4097Mi", false}, {"base", "4095Ti", false},
	}, func(t *testing.T, r row) {
		flags := []string{"--node=n", "--zone-kind=file", "--zone-dir=/z", "--zone-size=1Gi", "--zone-" + r.name + "=" + r.value}
		same(t, r.taken, driverTakes(flags), "zone.kind=file", "zone."+r.name+"="+r.value)
	})
	cases(t, "the name of a zone", []row{
		{"", "snapper", true}, {"", "snapshots", false}, {"", "pvmove0", false}, // LVM reserves these names
	}, func(t *testing.T, r row) {
		same(t, r.taken, driverTakes([]string{"--node=n", "--zone=" + r.value}), "zone.name="+r.value)
	})
	cases(t, "parameters", []row{
		{"lease", "0", false}, {"lease", "00001", false}, {"lease", "1", false}, {"lease", "2", true}, {"lease", "9999", true},
		{"lease", "86400", true}, {"lease", "86401", false}, {"lease", "99999", false}, {"lease", "never", true},
		{"rootOwner", "0:4294967294", true}, {"rootOwner", "0:4294967295", false}, {"rootOwner", "4294967294:107", true},
		{"rootOwner", "4294967295:107", false}, {"rootOwner", "9999999999:0", false},
		{"maxSize", "14Mi", false}, {"maxSize", "16Mi", true}, {"maxSize", "17Mi", false}, {"maxSize", "66Ti", false},
		{"reserve", "1Mi", false}, {"reserve", "2Mi", true}, {"reserve", "3Mi", false}, {"reserve", "64Ti", true},
		{"reserve", "66Ti", false},
	}, func(t *testing.T, r row) {
		same(t, r.taken, request.CheckClass(map[string]string{r.name: r.value}),
			"storageClasses[0].name=a", "storageClasses[0].parameters."+r.name+"="+r.value)
		if r.name == "lease" || r.name == "rootOwner" { // inline volumes have these parameters, too
			pair := r.name + "=" + r.value
			same(t, r.taken, driverTakes([]string{"--node=n", "--inline-parameters=" + pair}), "inlineVolumes.parameters."+pair)
		}
	})
}
