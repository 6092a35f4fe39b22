// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/nodemeta"
	"stargate/csi-driver/internal/pool"
)

// parameter is a parameter of a StorageClass, or of an inline volume.
type parameter struct {
	name    string
	allowed string // for the message when it is not
	set     func(s *settings, value string) bool
}

// settings are the values of the parameters.
type settings struct {
	align     int64
	label     string
	maxSize   int64
	reserve   int64
	rootMode  string
	rootOwner string
	lease     string
	hostMode  string
	size      int64 // of inline volumes only
	target    pool.Target
}

const mostLabel = 63

var (
	octal = regexp.MustCompile(`^[0-7]{3,4}$`)
	lease = regexp.MustCompile(`^(never|[0-9]{1,5})$`)
)

// The one table of parameters; the README describes them.
var parameters = []parameter{
	{"alignment", "2Mi or 1Gi", func(s *settings, v string) bool {
		n, ok := map[string]int64{"2Mi": pool.Extent, "1Gi": pool.Gigabyte}[v]
		s.align = n
		return ok
	}},
	{"dataMode", "inplace", func(_ *settings, v string) bool { return v == "inplace" }},
	{"hostMode", "walk, splice or shadow", func(s *settings, v string) bool {
		s.hostMode = v
		return v == "walk" || v == "splice" || v == "shadow"
	}},
	{"label", "up to 63 bytes of text without control characters", func(s *settings, v string) bool {
		s.label = v
		return v != "" && len(v) <= mostLabel && utf8.ValidString(v) && !strings.ContainsFunc(v, unicode.IsControl)
	}},
	{"maxSize", "16Mi to 64Ti, a multiple of 2Mi", func(s *settings, v string) bool {
		n, ok := quantity(v)
		s.maxSize = n
		return ok && n >= pool.MinVolume && n <= pool.MaxVolume && n%pool.Extent == 0
	}},
	{nodemeta.ReserveParameter, "2Mi to 64Ti, a multiple of 2Mi", func(s *settings, v string) bool {
		n, ok := quantity(v)
		s.reserve = n
		return ok && n >= pool.Extent && n <= pool.MaxVolume && n%pool.Extent == 0
	}},
	{"rootMode", "three or four octal digits", func(s *settings, v string) bool {
		s.rootMode = v
		return octal.MatchString(v)
	}},
	{"rootOwner", "UID:GID in decimal, each at most 4294967294", func(s *settings, v string) bool {
		s.rootOwner = v
		uid, gid, _ := strings.Cut(v, ":")
		_, whose := decimal(uid, lastOwner)
		_, in := decimal(gid, lastOwner)
		return whose && in
	}},
	{"lease", "never, or 2 to 86400 (seconds)", func(s *settings, v string) bool {
		s.lease = v
		n, err := strconv.Atoi(v)
		return lease.MatchString(v) && (err != nil || n >= 2 && n <= 86400)
	}},
}

// Only for inline volumes.
var inlineSize = parameter{"size", "16Mi to 64Ti", func(s *settings, v string) bool {
	n, ok := quantity(v)
	s.size = n
	return ok && n > 0 && n <= pool.MaxVolume
}}

// operators are parameters of inline volumes that the pod's author does not choose: the owner,
// whether systems that pause are fenced, and whether the node's kernel follows tables that machines
// write.
var operators = []string{"hostMode", "lease", "rootOwner"}

func operatorsAlone(p parameter) bool { return slices.Contains(operators, p.name) }

// CheckInline checks the operator's parameters for all inline volumes (Config.Inline).
func CheckInline(given map[string]string) error {
	_, err := parse(slices.DeleteFunc(slices.Clone(parameters), func(p parameter) bool { return !operatorsAlone(p) }), given)
	return err
}

// CheckClass checks the parameters of a StorageClass.
func CheckClass(given map[string]string) error {
	_, err := parse(parameters, given)
	return err
}

// inlineSettings are an inline volume's settings, from its pod and from the operator.
func (c Config) inlineSettings(said map[string]string) (settings, error) {
	table := append(slices.Clone(parameters), inlineSize)
	all := map[string]string{}
	maps.Copy(all, said)
	for _, name := range operators {
		if _, ok := said[name]; ok {
			return settings{}, errkind.New(errkind.Invalid, "parameter %s of an inline volume is the operator's (--inline-parameters)", name)
		}
		if v, ok := c.Inline[name]; ok {
			all[name] = v
		}
	}
	return parse(table, all)
}

// Parameters of a VolumeSnapshotClass.
var snapshotParameters = []parameter{
	{"snapshotTarget", "zone, folder or either", func(s *settings, v string) bool {
		s.target = pool.Target(v)
		return slices.Contains([]pool.Target{pool.InZone, pool.InFolder, pool.Either}, s.target)
	}},
}

func quantity(v string) (int64, bool) {
	if len(v) > 32 {
		return 0, false
	}
	q, err := resource.ParseQuantity(v)
	if err != nil || q.Sign() < 0 {
		return 0, false
	}
	n, ok := q.AsInt64()
	return n, ok
}

// Kubernetes adds keys of its own, with the claim of a volume and the request.
const foreignPrefix = "csi.storage.k8s.io/"

// parse checks parameters against a table, and refuses unknown ones.
func parse(table []parameter, given map[string]string) (settings, error) {
	s := settings{align: pool.Extent, target: pool.InZone}
	keys := make([]string, 0, len(given))
	for key := range given {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		if strings.HasPrefix(key, foreignPrefix) {
			continue
		}
		i := slices.IndexFunc(table, func(p parameter) bool { return p.name == key })
		if i < 0 {
			return s, errkind.New(errkind.Invalid, "there is no parameter %q; there are %s", key, names(table))
		}
		if !table[i].set(&s, given[key]) {
			return s, errkind.New(errkind.Invalid, "parameter %s=%q: allowed is %s", key, given[key], table[i].allowed)
		}
	}
	return s, nil
}

func names(table []parameter) string {
	var all []string
	for _, p := range table {
		all = append(all, p.name)
	}
	return strings.Join(all, ", ")
}

// spec is a volume with these settings.
func (s settings) spec(name string, size int64) pool.Spec {
	return pool.Spec{
		Name: name, Size: size, Align: s.align, Label: s.label, MaxSize: s.maxSize, Reserve: s.reserve, RootOwner: s.rootOwner,
		RootMode: s.rootMode, Lease: s.lease, HostSplice: s.hostMode == "splice",
	}
}

// Keys of the context that accompanies a volume to the node, and is part of its PersistentVolume.
const contextHostMode = "hostMode"

func (s settings) context(v pool.Volume) map[string]string {
	words := map[string]string{}
	if s.hostMode != "" {
		words[contextHostMode] = s.hostMode
	}
	// The webhook charges it to the VM's pod: the claim's capacity does not include the
	// reserve.
	if s.reserve > 0 {
		words[nodemeta.MemoryAttribute] = strconv.FormatInt(v.Memory, 10)
	}
	if len(words) == 0 {
		return nil
	}
	return words
}

// allowed checks the settings against this node.
func (s settings) allowed(c Config) error {
	if s.hostMode == "splice" && !c.AllowHostSplice {
		return errkind.New(errkind.Invalid, "parameter hostMode=\"splice\": this node does not allow it (--allow-host-splice)")
	}
	if s.target != pool.InZone && !c.SnapshotFolder {
		return errkind.New(errkind.Invalid, "parameter snapshotTarget=%q: this node has no folder for snapshots (--snapshot-dir)", s.target)
	}
	return nil
}

// mode is the mount option for a host mode.
func mode(context map[string]string) ([]string, error) {
	m, ok := context[contextHostMode]
	if !ok {
		return nil, nil
	}
	if !slices.Contains([]string{"walk", "splice", "shadow"}, m) {
		return nil, errkind.New(errkind.Invalid, "volume context %s=%q: allowed is walk, splice or shadow", contextHostMode, m)
	}
	return []string{fmt.Sprintf("map=%s", m)}, nil
}
