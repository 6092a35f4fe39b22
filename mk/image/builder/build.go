// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

type options struct {
	dockerfile, context, reference, archive string
	args, also                              values
	epoch                                   time.Time
}

// builder executes each stage of a recipe at most once.
type builder struct {
	options
	recipe *recipe
	ignore *ignored
	global variables
	work   string
	done   map[string]*built
}

// built is an executed stage, whose files are in dir.
type built struct {
	dir     string
	workdir string
	vars    variables
}

// build executes the last stage and the stages that it needs, and writes the archive.
func build(ctx context.Context, o options) (v1.Hash, int64, error) {
	var none v1.Hash
	if o.dockerfile == "" {
		o.dockerfile = filepath.Join(o.context, "Dockerfile")
	}
	f, err := os.Open(o.dockerfile)
	if err != nil {
		return none, 0, err
	}
	defer f.Close()
	r, err := read(f)
	if err != nil {
		return none, 0, err
	}
	b := &builder{options: o, recipe: r, done: map[string]*built{}}
	if b.ignore, err = readIgnored(o.context); err != nil {
		return none, 0, err
	}
	if err := b.checkArgs(); err != nil {
		return none, 0, err
	}
	if b.work, err = os.MkdirTemp("", "image"); err != nil {
		return none, 0, err
	}
	defer os.RemoveAll(b.work)
	image, err := b.last(ctx)
	if err != nil {
		return none, 0, err
	}
	return write(image, o)
}

// checkArgs evaluates the ARGs before the first FROM, and refuses values for unknown ones.
func (b *builder) checkArgs() error {
	known := map[string]bool{"SOURCE_DATE_EPOCH": true}
	steps := b.recipe.global
	for _, s := range b.recipe.global {
		if err := b.global.declare(s, b.args, nil); err != nil {
			return err
		}
	}
	for _, st := range b.recipe.stages {
		steps = append(steps[:len(steps):len(steps)], st.steps...)
	}
	for _, s := range steps {
		if s.op != "arg" {
			continue
		}
		for _, word := range s.args {
			name, _, _ := strings.Cut(word, "=")
			known[name] = true
		}
	}
	for name := range b.args {
		if !known[name] {
			return fmt.Errorf("-arg %s: the Dockerfile has no ARG %s", name, name)
		}
	}
	return nil
}

// execute runs a stage from which other stages copy files. It runs on this machine, in place of the
// stage's base image, and in a folder of its own.
func (b *builder) execute(ctx context.Context, s *stage) (*built, error) {
	if d := b.done[s.name]; d != nil {
		return d, nil
	}
	if b.recipe.stage(s.base) != nil || s.base == "scratch" {
		return nil, fmt.Errorf("Dockerfile: stage %s begins from %s: COPY --from needs a stage that begins from an image", s.name, s.base)
	}
	d := &built{dir: filepath.Join(b.work, s.name), workdir: "/"}
	for _, st := range s.steps {
		if err := b.act(ctx, d, st); err != nil {
			return nil, err
		}
	}
	b.done[s.name] = d
	return d, nil
}

// act executes an instruction of such a stage.
func (b *builder) act(ctx context.Context, d *built, s step) error {
	switch s.op {
	case "arg":
		return d.vars.declare(s, b.args, b.global.values)
	case "env":
		return setEnv(&d.vars, s, func(name, value string) { d.vars.set(name, value) })
	case "workdir":
		return setWorkdir(d, s)
	case "copy":
		return b.copyTo(ctx, s, &d.vars, d.dir, d.workdir)
	case "run":
		return b.run(ctx, d, s)
	}
	return s.refuse("%s is not supported in a stage from which other stages copy", strings.ToUpper(s.op))
}

func setWorkdir(d *built, s step) error {
	if len(s.args) != 1 || !filepath.IsAbs(s.args[0]) {
		return s.refuse("WORKDIR /FOLDER")
	}
	d.workdir = filepath.Clean(s.args[0])
	return os.MkdirAll(filepath.Join(d.dir, d.workdir), 0o755)
}

// setEnv reads NAME VALUE SEPARATOR, the parser's form.
func setEnv(v *variables, s step, set func(name, value string)) error {
	for i := 0; i+1 < len(s.args); i += 3 {
		value, err := v.expand(s, s.args[i+1])
		if err != nil {
			return err
		}
		set(s.args[i], value)
	}
	return nil
}

// run executes RUN with this machine's shell, as Docker does with the image's shell. The command's
// output goes to stderr.
func (b *builder) run(ctx context.Context, d *built, s step) error {
	if s.json || len(s.flags) > 0 || len(s.args) != 1 {
		return s.refuse("only the form RUN COMMAND, for a shell, is supported")
	}
	if d.workdir == "/" {
		return s.refuse("RUN before WORKDIR would run in this machine's /: put WORKDIR first")
	}
	fmt.Fprintf(os.Stderr, "== %s\n", s.text)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", s.args[0])
	cmd.Dir = filepath.Join(d.dir, d.workdir)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Env = append(outside(os.Environ()), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.epoch.Unix()))
	cmd.Env = append(cmd.Env, d.vars.environ()...)
	if err := cmd.Run(); err != nil {
		return s.refuse("%s: %v", s.text, err)
	}
	return nil
}

// outside returns this machine's environment, without the variables of a make or a git that called
// this program.
func outside(environ []string) []string {
	var kept []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "MAKE") || strings.HasPrefix(name, "GIT_") || name == "MFLAGS" {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}
