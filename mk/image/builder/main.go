// SPDX-License-Identifier: Apache-2.0

// image executes a Dockerfile without a daemon, into an archive (OCI) that containerd, podman and
// Docker import. A stage with a base image runs on this machine instead of in that image, in a
// folder that has only the files of COPY. The Dockerfile defines the layers and the configuration
// of the last stage. The program refuses an instruction that it does not support, so that every
// builder executes the same recipe.
//
//	image build [-f Dockerfile] [-C context] [-arg NAME=VALUE]... [-also INSIDE=OUTSIDE]... -t
//	NAME:TAG -o ARCHIVE image sbom -name NAME -version VERSION ROOT
//
// sbom prints the content of a root folder (SPDX 2.3, JSON).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"
)

const usage = 2

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:])
	if errors.Is(err, errUsage) {
		fmt.Fprintln(os.Stderr, "usage: image build -t NAME:TAG -o ARCHIVE [-f DOCKERFILE] [-C CONTEXT] [-arg NAME=VALUE]... | image sbom -name NAME -version VERSION ROOT")
		os.Exit(usage)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage")

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	switch args[0] {
	case "build":
		return runBuild(ctx, args[1:])
	case "sbom":
		return runSBOM(args[1:])
	}
	return errUsage
}

// values is a flag that may be given several times: NAME=VALUE.
type values map[string]string

func (v values) String() string { return "" }

func (v values) Set(s string) error {
	name, value, found := strings.Cut(s, "=")
	if !found || name == "" {
		return fmt.Errorf("%q: NAME=VALUE", s)
	}
	v[name] = value
	return nil
}

func runBuild(ctx context.Context, args []string) error {
	o := options{args: values{}, also: values{}}
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.StringVar(&o.dockerfile, "f", "", "the Dockerfile (default: Dockerfile in the context)")
	flags.StringVar(&o.context, "C", ".", "the context: the folder from which COPY copies")
	flags.StringVar(&o.reference, "t", "", "name of the image")
	flags.StringVar(&o.archive, "o", "", "archive to make")
	flags.Var(o.also, "also", "INSIDE=OUTSIDE: also copy the image's file INSIDE to OUTSIDE")
	flags.Var(o.args, "arg", "NAME=VALUE: the value of an ARG of the Dockerfile")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || o.reference == "" || o.archive == "" {
		return errUsage
	}
	epoch, err := epoch()
	if err != nil {
		return err
	}
	o.epoch = epoch
	digest, size, err := build(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("%s %d %s\n", digest, size, o.reference)
	return nil
}

// epoch returns the time of all files in the image, which is that of SOURCE_DATE_EPOCH.
func epoch() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q: must be a number of seconds since 1970", text)
	}
	return time.Unix(n, 0).UTC(), nil
}
