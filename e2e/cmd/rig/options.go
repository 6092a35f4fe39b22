// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"stargate/e2e/internal/versions"
)

// options are the flags of run and shell.
type options struct {
	guests    int
	size      size
	kernel    string
	cpus      int
	memory    size
	mountOpts list
	packages  list
	copyIn    paths
	pages     bool
	noMount   bool
	noModule  bool
	icount    bool
	append    string
	timeout   time.Duration
	keepLogs  bool
	text      string   // of -c
	script    []string // what follows the flags
}

func parseOptions(r rig, name, rest string, args []string) (*options, error) {
	o := &options{size: 256 << 20, memory: 512 << 20}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: e2e/rig %s [FLAG]... %s\n", name, rest)
		flags.PrintDefaults()
	}
	flags.IntVar(&o.guests, "guests", 1, "number of guests: g1, g2, ...")
	flags.Var(&o.size, "size", "size of the shared range, a multiple of 2M")
	flags.StringVar(&o.kernel, "kernel", r.versions["KERNEL_DEFAULT"], "kernel of the guests: "+r.versions["KERNELS"]+", debug (KASAN, lockdep, kmemleak), or the path of a self-built one (with a slash)")
	flags.IntVar(&o.cpus, "cpus", 1, "CPUs of each guest")
	flags.Var(&o.memory, "mem", "memory of each guest")
	flags.Var(&o.mountOpts, "mount-opts", "options of the volume's mount (may be repeated)")
	flags.Var(&o.packages, "pkgs", "Debian packages to have in the guests (may be repeated)")
	flags.Var(&o.copyIn, "copy-in", "file or folder to have under /root/in in the guests (may be repeated)")
	flags.BoolVar(&o.pages, "pages", false, "give the range struct pages, as a node's zone has, instead of a VM's NVDIMM without")
	flags.BoolVar(&o.noMount, "no-mount", false, "load the module, but neither format nor mount")
	flags.BoolVar(&o.noModule, "no-module", false, "guests without module and tools (implies --no-mount)")
	flags.BoolVar(&o.icount, "icount", false, "repeatable instruction counts: one guest nanosecond is one instruction")
	flags.StringVar(&o.append, "append", "", "more words for the guests' kernel command line")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Minute, "limit of the whole run")
	flags.BoolVar(&o.keepLogs, "keep-logs", false, "keep the logs of a run that succeeded, too")
	if name == "run" {
		flags.StringVar(&o.text, "c", "", "the script itself, instead of its path")
	}
	if err := flags.Parse(args); err != nil {
		return nil, status(2)
	}
	o.script = flags.Args()
	return o, o.check()
}

func (o *options) check() error {
	o.noMount = o.noMount || o.noModule
	switch {
	case o.guests < 1 || o.guests > 16:
		return fmt.Errorf("--guests %d: 1 to 16", o.guests)
	case o.cpus < 1:
		return fmt.Errorf("--cpus %d", o.cpus)
	case o.size <= 0 || o.size%(2<<20) != 0:
		return fmt.Errorf("--size %s: a multiple of 2M, which is what large pages need", o.size)
	case o.memory < 64<<20 || o.memory > 2<<30:
		return fmt.Errorf("--mem %s: 64M to 2G (the shared range lies above)", o.memory)
	case o.icount && (o.cpus > 1 || o.guests > 1):
		return fmt.Errorf("--icount counts the instructions of one CPU: one guest with one CPU")
	}
	return nil
}

// size is a number of bytes written with a unit.
type size int64

var sizeFormat = regexp.MustCompile(`^([0-9]+)([KMGT]?)(I?B)?$`)

func (s *size) Set(text string) error {
	parts := sizeFormat.FindStringSubmatch(strings.ToUpper(text))
	if parts == nil {
		return fmt.Errorf("%q is no size like 256M or 4G", text)
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

// list is a flag that takes several items at once and may be repeated.
type list []string

func (l *list) Set(text string) error { *l = append(*l, versions.Split(text)...); return nil }
func (l *list) String() string        { return strings.Join(*l, ",") }

// paths is a flag that takes one path each time.
type paths []string

func (p *paths) Set(text string) error { *p = append(*p, text); return nil }
func (p *paths) String() string        { return strings.Join(*p, " ") }
