// SPDX-License-Identifier: Apache-2.0

package request

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
	allowed string // allowed values, for the error message
	set     func(s *Settings, value string) bool
}

// Settings has the values of the parameters.
type Settings struct {
	Align     int64
	Label     string
	MaxSize   int64
	Reserve   int64
	RootMode  string
	RootOwner string
	Lease     string
	HostMode  string
	DataMode  string
	Size      int64 // only of inline volumes
	Target    pool.Target
}

// MostLabel is the maximum length of a label, in bytes.
const MostLabel = 63

var (
	octal = regexp.MustCompile(`^[0-7]{3,4}$`)
	lease = regexp.MustCompile(`^(never|[0-9]{1,5})$`)
)

// parameters has all parameters of a StorageClass; the README describes them.
var parameters = []parameter{
	{"alignment", "2Mi or 1Gi", func(s *Settings, v string) bool {
		n, ok := map[string]int64{"2Mi": pool.Extent, "1Gi": pool.Gigabyte}[v]
		s.Align = n
		return ok
	}},
	{"dataMode", "inplace or atomic", func(s *Settings, v string) bool {
		s.DataMode = v
		return v == "inplace" || v == "atomic"
	}},
	{"hostMode", "walk, splice or shadow", func(s *Settings, v string) bool {
		s.HostMode = v
		return v == "walk" || v == "splice" || v == "shadow"
	}},
	{"label", "up to 63 bytes of text without control characters", func(s *Settings, v string) bool {
		s.Label = v
		return v != "" && len(v) <= MostLabel && utf8.ValidString(v) && !strings.ContainsFunc(v, unicode.IsControl)
	}},
	{"maxSize", "16Mi to 64Ti, a multiple of 2Mi", func(s *Settings, v string) bool {
		n, ok := quantity(v)
		s.MaxSize = n
		return ok && n >= pool.MinVolume && n <= pool.MaxVolume && n%pool.Extent == 0
	}},
	{nodemeta.ReserveParameter, "2Mi to 64Ti, a multiple of 2Mi", func(s *Settings, v string) bool {
		n, ok := quantity(v)
		s.Reserve = n
		return ok && n >= pool.Extent && n <= pool.MaxVolume && n%pool.Extent == 0
	}},
	{"rootMode", "three or four octal digits", func(s *Settings, v string) bool {
		s.RootMode = v
		return octal.MatchString(v)
	}},
	{"rootOwner", "UID:GID in decimal, each at most 4294967294", func(s *Settings, v string) bool {
		s.RootOwner = v
		uid, gid, _ := strings.Cut(v, ":")
		_, whose := decimal(uid, lastOwner)
		_, in := decimal(gid, lastOwner)
		return whose && in
	}},
	{"lease", "never, or 2 to 86400 (seconds)", func(s *Settings, v string) bool {
		s.Lease = v
		n, err := strconv.Atoi(v)
		return lease.MatchString(v) && (err != nil || n >= 2 && n <= 86400)
	}},
}

// inlineSize is the parameter that only inline volumes have.
var inlineSize = parameter{"size", "16Mi to 64Ti", func(s *Settings, v string) bool {
	n, ok := quantity(v)
	s.Size = n
	return ok && n > 0 && n <= pool.MaxVolume
}}

// operators has the parameters of inline volumes that only the operator can set, not the pod's
// author. They decide three things: the owner, whether silent systems are fenced, and whether the
// node's kernel follows tables that VMs write.
var operators = []string{"hostMode", "lease", "rootOwner"}

func operatorsAlone(p parameter) bool { return slices.Contains(operators, p.name) }

// CheckInline checks Config.Inline, the operator's parameters for all inline volumes.
func CheckInline(given map[string]string) error {
	_, err := parse(slices.DeleteFunc(slices.Clone(parameters), func(p parameter) bool { return !operatorsAlone(p) }), given)
	return err
}

// CheckClass checks the parameters of a StorageClass.
func CheckClass(given map[string]string) error {
	_, err := OfClass(given)
	return err
}

// OfClass returns the settings of a StorageClass.
func OfClass(given map[string]string) (Settings, error) { return parse(parameters, given) }

// OfSnapshotClass returns the settings of a VolumeSnapshotClass.
func OfSnapshotClass(given map[string]string) (Settings, error) {
	return parse(snapshotParameters, given)
}

// InlineSettings returns an inline volume's settings. They come from its pod and from the operator.
func (c Config) InlineSettings(said map[string]string) (Settings, error) {
	table := append(slices.Clone(parameters), inlineSize)
	all := map[string]string{}
	maps.Copy(all, said)
	for _, name := range operators {
		if _, ok := said[name]; ok {
			return Settings{}, errkind.New(errkind.Invalid, "parameter %s of an inline volume can be set only by the operator (--inline-parameters)", name)
		}
		if v, ok := c.Inline[name]; ok {
			all[name] = v
		}
	}
	return parse(table, all)
}

// snapshotParameters are the parameters of a VolumeSnapshotClass.
var snapshotParameters = []parameter{
	{"snapshotTarget", "zone, folder or either", func(s *Settings, v string) bool {
		s.Target = pool.Target(v)
		return slices.Contains([]pool.Target{pool.InZone, pool.InFolder, pool.Either}, s.Target)
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

// ForeignPrefix is the prefix of keys that Kubernetes adds. They describe the claim and the
// request.
const ForeignPrefix = "csi.storage.k8s.io/"

// ContextInline is the key by which Kubernetes marks an inline volume.
const ContextInline = ForeignPrefix + "ephemeral"

// parse reads parameters by a table, and refuses unknown parameters.
func parse(table []parameter, given map[string]string) (Settings, error) {
	s := Settings{Align: pool.Extent, Target: pool.InZone}
	keys := make([]string, 0, len(given))
	for key := range given {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		if strings.HasPrefix(key, ForeignPrefix) {
			continue
		}
		i := slices.IndexFunc(table, func(p parameter) bool { return p.name == key })
		if i < 0 {
			return s, errkind.New(errkind.Invalid, "there is no parameter %q; the parameters are %s", key, names(table))
		}
		if !table[i].set(&s, given[key]) {
			return s, errkind.New(errkind.Invalid, "parameter %s=%q: must be %s", key, given[key], table[i].allowed)
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

// Spec returns the description of a volume with these settings.
func (s Settings) Spec(name string, size int64) pool.Spec {
	return pool.Spec{
		Name: name, Size: size, Align: s.Align, Label: s.Label, MaxSize: s.MaxSize, Reserve: s.Reserve, RootOwner: s.RootOwner,
		RootMode: s.RootMode, Lease: s.Lease, HostSplice: s.HostMode == "splice", DataAtomic: s.DataMode == "atomic",
	}
}

// Key of the volume context, which is part of the PersistentVolume and of kubelet's calls.
const contextHostMode = "hostMode"

// Context returns the volume context for a volume.
func (s Settings) Context(v pool.Volume) map[string]string {
	words := map[string]string{}
	if s.HostMode != "" {
		words[contextHostMode] = s.HostMode
	}
	// The webhook adds this size to the memory limit of the VM's pod. The claim's capacity does
	// not include the reserve.
	if s.Reserve > 0 {
		words[nodemeta.MemoryAttribute] = strconv.FormatInt(v.Memory, 10)
	}
	if len(words) == 0 {
		return nil
	}
	return words
}

// Allowed checks that this node's configuration allows the settings.
func (s Settings) Allowed(c Config) error {
	if s.HostMode == "splice" && !c.AllowHostSplice {
		return errkind.New(errkind.Invalid, "parameter hostMode=\"splice\": this node does not allow it (--allow-host-splice)")
	}
	if s.Target != pool.InZone && !c.SnapshotFolder {
		return errkind.New(errkind.Invalid, "parameter snapshotTarget=%q: this node has no folder for snapshots (--snapshot-dir)", s.Target)
	}
	return nil
}

// HostMode returns the mount option for the host mode in a volume context.
func HostMode(context map[string]string) ([]string, error) {
	m, ok := context[contextHostMode]
	if !ok {
		return nil, nil
	}
	if !slices.Contains([]string{"walk", "splice", "shadow"}, m) {
		return nil, errkind.New(errkind.Invalid, "volume context %s=%q: must be walk, splice or shadow", contextHostMode, m)
	}
	return []string{fmt.Sprintf("map=%s", m)}, nil
}
