// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"stargate/e2e/internal/kernel"
	"stargate/e2e/internal/versions"
	"stargate/e2e/internal/vm"
)

// options has the values of the flags of run and shell.
type options struct {
	guests    int
	node      bool
	nodeOn    string // the node's kernel
	zone      string // the kind of the node's memory
	size      size
	kernels   []string // g1 gets the first, g2 the second, and so on in a circle
	cpus      int
	memory    size
	mountOpts list
	packages  list
	copyIn    paths
	shares    list
	net       bool
	bells     bool
	tap       string // the network device to which g1's is connected
	disk      string // file of a disk that keeps g1's writes
	nested    bool
	pages     bool
	labels    bool
	noMount   bool
	noModule  bool
	noGuard   bool
	icount    bool
	append    string
	timeout   limit
	keepLogs  bool
	each      string   // folder for the output of scripts that share the guests
	text      string   // of -c
	script    []string // the words behind the flags
}

func parseOptions(r rig, name, rest string, args []string) (*options, error) {
	var list string
	o := &options{size: 256 << 20, timeout: limit(30 * time.Minute)}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.IntVar(&o.guests, "guests", 1, "number of guests: g1, g2, ...")
	flags.BoolVar(&o.node, "node", false, "run the guests under the KVM of a node called host, which also mounts the volume")
	flags.StringVar(&o.nodeOn, "node-kernel", r.versions["KERNEL_DEFAULT"], "kernel of the node")
	flags.StringVar(&o.zone, "zone", zoneNVM, "effect of a power cut on the node's range: "+zoneNVM+" keeps the bytes, "+zoneDRAM+" loses them")
	flags.Var(&o.size, "size", "size of the shared range, a multiple of 2M")
	flags.StringVar(&list, "kernel", r.versions["KERNEL_DEFAULT"], "kernel of the guests: "+r.versions["KERNELS"]+", debug (KASAN, lockdep, kmemleak), several of these with commas for guests that have them in turn, or the path of a self-built one (with a slash)")
	flags.IntVar(&o.cpus, "cpus", 1, "CPUs of each guest")
	flags.Var(&o.memory, "mem", "memory of each guest (default 512M; in a node 384M; debug kernel 1536M)")
	flags.Var(&o.mountOpts, "mount-opts", "options of the volume's mount (may be repeated)")
	flags.Var(&o.packages, "pkgs", "Debian packages to install in the guests (may be repeated)")
	flags.Var(&o.copyIn, "copy-in", "file or folder to copy to /root/in in the guests (may be repeated)")
	flags.Var(&o.shares, "share", "mount a folder of this machine in all guests at /mnt/KIND: "+strings.Join(vm.ShareKinds, ", ")+" (may be repeated)")
	flags.BoolVar(&o.net, "net", false, "connect all guests by an Ethernet: g1 is 10.115.103.1")
	flags.BoolVar(&o.bells, "bells", false, "give each guest a doorbell, with which the others interrupt it")
	flags.StringVar(&o.tap, "tap", "", "connect g1's Ethernet to this tap of the machine")
	flags.StringVar(&o.disk, "disk", "", "file of a disk of g1 that keeps its content over power cuts; its serial number is kept")
	flags.BoolVar(&o.nested, "nested", false, "make it possible to load KVM in the guests")
	flags.BoolVar(&o.pages, "pages", false, "give the range struct pages, as in a node's zone; without this it is an NVDIMM, as in a VM")
	flags.BoolVar(&o.labels, "labels", false, "give that NVDIMM a label area, behind the range (implies --no-mount)")
	flags.BoolVar(&o.noMount, "no-mount", false, "load the module, but neither format nor mount")
	flags.BoolVar(&o.noModule, "no-module", false, "guests without module and tools (implies --no-mount)")
	flags.BoolVar(&o.noGuard, "no-guard", false, "run no guards, so that nothing reports the end of a guest")
	flags.BoolVar(&o.icount, "icount", false, "repeatable instruction counts: one guest nanosecond is one instruction")
	flags.StringVar(&o.append, "append", "", "more words for the guests' kernel command line")
	flags.Var(&o.timeout, "timeout", "limit of the run (default with --each: none, but each script has its own)")
	flags.BoolVar(&o.keepLogs, "keep-logs", false, "keep the logs also if the run succeeds")
	if name == "run" {
		flags.StringVar(&o.text, "c", "", "the text of the script, instead of a path")
		flags.StringVar(&o.each, "each", "", "run several scripts, one after the other, on the same guests; the output of each goes into this folder")
	}
	if err := parse(flags, rest, 0, -1, args); err != nil {
		return nil, err
	}
	o.script = flags.Args()
	if name == "run" {
		var err error
		if o.script, err = operands(name, o.script); err != nil {
			return nil, err
		}
	}
	o.noMount = o.noMount || o.noModule || o.labels
	o.kernels = kernelNames(list)
	if !given(flags, "mem") {
		o.memory = defaultMemory(o.kernels, o.node)
	}
	for _, name := range []string{"node-kernel", "zone"} {
		if given(flags, name) && !o.node {
			return nil, misused("--%s needs --node", name)
		}
	}
	if err := o.check(); err != nil {
		return nil, misused("%s: %v", flags.Name(), err)
	}
	if o.each != "" && !given(flags, "timeout") {
		o.timeout = limit(noLimit)
	}
	kernels := o.kernels
	if o.node {
		kernels = append([]string{o.nodeOn}, kernels...)
	}
	for _, name := range kernels {
		if err := r.checkKernel(name); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// kernelNames splits the value of --kernel into names. A path is a single name.
func kernelNames(text string) []string {
	if strings.ContainsRune(text, '/') || text == "" {
		return []string{text}
	}
	return strings.Split(text, ",")
}

// given reports whether the user has set a flag.
func given(flags *flag.FlagSet, name string) bool {
	found := false
	flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

func debug(kernels []string) bool {
	for _, name := range kernels {
		if name == kernel.DebugName {
			return true
		}
	}
	return false
}

// defaultMemory returns the default memory of guests with these kernels.
func defaultMemory(kernels []string, node bool) size {
	switch {
	case debug(kernels):
		return 1536 << 20 // KASAN needs room for its shadow and its quarantine
	case node:
		return 384 << 20
	}
	return 512 << 20
}

// Values of --zone. With nvm, the node's memory keeps its bytes over a power cut. With dram, it
// loses them.
const (
	zoneNVM  = "nvm"
	zoneDRAM = "dram"
)

// leastVolume is the smallest size that mkfs.stargatefs accepts.
const leastVolume = 16 << 20

func (o *options) check() error {
	switch {
	case o.guests < 1 && !(o.node && o.guests == 0) || o.guests > 16:
		return fmt.Errorf("--guests %d: must be 1 to 16, or 0 with --node", o.guests)
	case o.cpus < 1 || o.cpus > 255:
		return fmt.Errorf("--cpus %d: must be 1 to 255", o.cpus)
	case o.size <= 0 || o.size%(2<<20) != 0:
		return fmt.Errorf("--size %s: must be a multiple of 2M, the size of a large page", o.size)
	case o.size > 960<<30:
		return fmt.Errorf("--size %s: at most 960G, as QEMU's CPUs have 40 bits for addresses", o.size)
	case o.size < leastVolume && !o.noMount:
		return fmt.Errorf("--size %s: the smallest volume has %s; with --no-mount, the rig makes no volume", o.size, size(leastVolume))
	case o.labels && (o.pages || o.node):
		return fmt.Errorf("--labels: only an NVDIMM has labels; with --pages or --node the range is no NVDIMM")
	case o.memory < 256<<20 || o.memory > mostNodeMemory:
		return fmt.Errorf("--mem %s: must be at least 256M, which stock kernels need to boot, and at most %s, because the shared range is above it", o.memory, size(mostNodeMemory))
	case debug(o.kernels) && o.memory < 1<<30:
		return fmt.Errorf("--mem %s: must be 1G or more with the debug kernel", o.memory)
	case o.icount && (o.cpus > 1 || o.guests > 1):
		return fmt.Errorf("--icount counts the instructions of one CPU: use --guests 1 --cpus 1")
	case o.icount && len(o.shares) > 0:
		return fmt.Errorf("--icount: not with --share, because the share's server runs outside of the guest whose instructions are counted")
	case o.icount && o.net:
		return fmt.Errorf("--icount: not with --net, because only one guest runs")
	case o.bells && (o.icount || o.noModule || o.node && o.noMount):
		return fmt.Errorf("--bells: not with --icount, --no-module, nor with --node and --no-mount")
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %s: must be longer than 0", o.timeout.String())
	case len(o.append) > 1024:
		return fmt.Errorf("--append: %d characters: must be at most 1024, because kernels read 2047 characters, including the rig's own words", len(o.append))
	}
	if err := checkPackages(o.packages); err != nil {
		return err
	}
	if err := o.checkShares(); err != nil {
		return err
	}
	if err := o.checkNode(); err != nil {
		return err
	}
	if err := o.checkMember(); err != nil {
		return err
	}
	if err := o.checkEach(); err != nil {
		return err
	}
	_, err := o.copies()
	return err
}

// checkMember checks the options of a guest that is the node of a cluster.
func (o *options) checkMember() error {
	switch {
	case o.nested && (o.node || o.cpus > 1 || o.icount):
		return fmt.Errorf("--nested: only with --cpus 1, because with more CPUs QEMU's translation corrupts a guest's memory; not with --node, --icount")
	case o.tap == "" && o.disk == "":
		return nil
	case o.guests != 1 || o.node:
		return fmt.Errorf("--tap, --disk: only possible with one guest (--guests 1) and without --node")
	case o.tap != "" && (o.net || o.icount):
		return fmt.Errorf("--tap: not with --net, --icount")
	case o.tap != "" && !deviceName.MatchString(o.tap):
		return fmt.Errorf("--tap %q is not the name of a network device", o.tap)
	case o.disk == "":
		return nil
	}
	info, err := os.Stat(o.disk)
	if err != nil {
		return fmt.Errorf("--disk: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("--disk: %s is not a file", o.disk)
	}
	return nil
}

var deviceName = regexp.MustCompile(`^[a-z][a-z0-9.-]{0,14}$`)

// mostNodeMemory is the maximum memory of a node with its guests. The range is at an address above
// this memory.
const mostNodeMemory = 12 << 30

func (o *options) checkNode() error {
	switch {
	case !o.node:
		return nil
	case o.zone != zoneNVM && o.zone != zoneDRAM:
		return fmt.Errorf("--zone %q: must be %s or %s", o.zone, zoneNVM, zoneDRAM)
	case o.noModule:
		return fmt.Errorf("--node: not with --no-module, because the node's module shows the guests' range as a file")
	case o.icount:
		return fmt.Errorf("--node: not with --icount, which counts one machine's instructions")
	case len(o.shares) > 0:
		return fmt.Errorf("--node: not with --share")
	case o.net:
		return fmt.Errorf("--node: not with --net")
	case int64(o.guests)*int64(o.memory) > mostNodeMemory:
		return fmt.Errorf("--node: %d guests with %s each need too much memory: the node has at most %s, because the shared range is above it", o.guests, o.memory, size(mostNodeMemory))
	}
	return nil
}

func (o *options) checkShares() error {
	known, seen := map[string]bool{}, map[string]bool{}
	for _, kind := range vm.ShareKinds {
		known[kind] = true
	}
	for _, kind := range o.shares {
		if !known[kind] {
			return fmt.Errorf("--share %q: must be one of %s", kind, strings.Join(vm.ShareKinds, ", "))
		}
		if seen[kind] {
			return fmt.Errorf("--share: %s is named twice", kind)
		}
		seen[kind] = true
	}
	return nil
}

// checkEach returns an error for options that add state which the rig cannot restore between the
// scripts of --each.
func (o *options) checkEach() error {
	if o.each != "" && (o.node || o.labels || len(o.shares) > 0 || o.tap != "" || o.disk != "" || o.noModule) {
		return fmt.Errorf("--each: not with --node, --labels, --share, --tap, --disk, --no-module")
	}
	return nil
}

func checkPackages(names []string) error {
	for _, name := range names {
		if !packageName.MatchString(name) {
			return fmt.Errorf("--pkgs: %q is not the name of a Debian package", name)
		}
	}
	return nil
}

var packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)

// copies returns the paths of --copy-in by their paths in the guests.
func (o *options) copies() (map[string]string, error) {
	list := map[string]string{}
	for _, path := range o.copyIn {
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		if path == "" || abs == "/" {
			return nil, fmt.Errorf("--copy-in %q: must name a file or folder", path)
		}
		info, err := os.Stat(abs)
		if err != nil {
			return nil, fmt.Errorf("--copy-in: %w", err)
		}
		if !info.Mode().IsRegular() && !info.IsDir() {
			return nil, fmt.Errorf("--copy-in: %s is neither a file nor a folder", path)
		}
		inside := filepath.Join("root/in", filepath.Base(abs))
		if list[inside] != "" {
			return nil, fmt.Errorf("--copy-in: two paths are named %s", filepath.Base(abs))
		}
		list[inside] = abs
	}
	return list, nil
}

// checkScript returns an error unless there is a script that the rig can read.
func (o *options) checkScript() error {
	if o.each != "" {
		_, err := o.scripts()
		return err
	}
	if o.text != "" {
		return nil
	}
	if len(o.script) == 0 {
		return misused("run: SCRIPT is missing: give a path, - for standard input, or -c TEXT")
	}
	if o.script[0] == "-" {
		return nil
	}
	return checkReadable(o.script[0])
}

// checkReadable returns an error unless the path is that of a readable file.
func checkReadable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return misused("run: the script: %v", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return misused("run: the script: %s is a folder", path)
	}
	return nil
}

// size is a flag with a number of bytes, which may have a unit, for example 256M.
type size int64

var sizeFormat = regexp.MustCompile(`^([0-9]+)([KMGT]?)(I?B)?$`)

func (s *size) Set(text string) error {
	parts := sizeFormat.FindStringSubmatch(strings.ToUpper(text))
	if parts == nil {
		return fmt.Errorf("%q is not a size like 256M or 4G", text)
	}
	n, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return err
	}
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[parts[2]]
	if n > (1<<62)>>shift {
		return fmt.Errorf("%s is too large", text)
	}
	*s = size(n << shift)
	return nil
}

func (s size) String() string {
	for _, unit := range []struct {
		shift uint
		name  string
	}{{40, "T"}, {30, "G"}, {20, "M"}, {10, "K"}} {
		if s != 0 && s%(1<<unit.shift) == 0 {
			return fmt.Sprintf("%d%s", s>>unit.shift, unit.name)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// limit is a flag with a duration, for example 90s. The unit is necessary.
type limit time.Duration

func (l *limit) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration like 90s or 30m", text)
	}
	*l = limit(d)
	return nil
}

func (l *limit) String() string { return time.Duration(*l).String() }

// list is a flag that takes several items, and may be repeated.
type list []string

func (l *list) Set(text string) error { *l = append(*l, versions.Split(text)...); return nil }
func (l *list) String() string        { return strings.Join(*l, ",") }

// paths is a flag that takes one path each time.
type paths []string

func (p *paths) Set(text string) error { *p = append(*p, text); return nil }
func (p *paths) String() string        { return strings.Join(*p, " ") }
