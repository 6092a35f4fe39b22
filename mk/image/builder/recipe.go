// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// step is one instruction of a stage.
type step struct {
	line  int
	op    string // lower-case
	flags []string
	args  []string
	json  bool // args are the words of a command that needs no shell
	text  string
}

func (s step) refuse(format string, args ...any) error {
	return fmt.Errorf("Dockerfile, line %d: %s", s.line, fmt.Sprintf(format, args...))
}

// stage is the part of a Dockerfile from one FROM to the next.
type stage struct {
	name  string
	base  string
	steps []step
}

// recipe is a Dockerfile: its global part and its stages.
type recipe struct {
	global []step // ARG before the first FROM
	stages []*stage
}

func (r *recipe) stage(name string) *stage {
	for _, s := range r.stages {
		if s.name == name {
			return s
		}
	}
	return nil
}

// read parses a Dockerfile. The builder checks the meaning of an instruction when it executes it.
func read(text io.Reader) (*recipe, error) {
	parsed, err := parser.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("Dockerfile: %w", err)
	}
	r := &recipe{}
	for _, node := range parsed.AST.Children {
		s := step{line: node.StartLine, op: strings.ToLower(node.Value), flags: node.Flags, json: node.Attributes["json"], text: node.Original}
		for n := node.Next; n != nil; n = n.Next {
			s.args = append(s.args, n.Value)
		}
		switch {
		case s.op == "from":
			next, err := newStage(s, len(r.stages))
			if err != nil {
				return nil, err
			}
			r.stages = append(r.stages, next)
		case len(r.stages) > 0:
			last := r.stages[len(r.stages)-1]
			last.steps = append(last.steps, s)
		case s.op == "arg":
			r.global = append(r.global, s)
		default:
			return nil, s.refuse("%s before the first FROM", strings.ToUpper(s.op))
		}
	}
	if len(r.stages) == 0 {
		return nil, fmt.Errorf("Dockerfile: no FROM")
	}
	return r, nil
}

func newStage(s step, n int) (*stage, error) {
	if len(s.flags) > 0 {
		return nil, s.refuse("FROM %s is not supported", s.flags[0])
	}
	switch {
	case len(s.args) == 1:
		return &stage{name: fmt.Sprint(n), base: s.args[0]}, nil
	case len(s.args) == 3 && strings.EqualFold(s.args[1], "as"):
		return &stage{name: s.args[2], base: s.args[0]}, nil
	}
	return nil, s.refuse("FROM IMAGE [AS NAME]")
}

// variables has the values that ARG and ENV have set so far in a stage.
type variables struct {
	names  []string
	values map[string]string
}

func (v *variables) Get(name string) (string, bool) { value, ok := v.values[name]; return value, ok }

func (v *variables) Keys() []string { return v.names }

func (v *variables) set(name, value string) {
	if v.values == nil {
		v.values = map[string]string{}
	}
	if !slices.Contains(v.names, name) {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

// environ returns NAME=VALUE for each variable.
func (v *variables) environ() []string {
	var all []string
	for _, name := range v.names {
		all = append(all, name+"="+v.values[name])
	}
	return all
}

// expand replaces $NAME and ${NAME} by their values, as Docker does.
func (v *variables) expand(s step, word string) (string, error) {
	out, unset, err := shell.NewLex('\\').ProcessWord(word, v)
	if err != nil {
		return "", s.refuse("%s: %v", word, err)
	}
	if len(unset) > 0 {
		return "", s.refuse("%s: no value for %s", word, strings.Join(slices.Sorted(maps.Keys(unset)), ", "))
	}
	return out, nil
}

// declare executes ARG: it sets the variable to the user's value or, without one, to the default.
func (v *variables) declare(s step, given, inherited map[string]string) error {
	for _, word := range s.args {
		name, value, has := strings.Cut(word, "=")
		if g, ok := given[name]; ok {
			value, has = g, true
		} else if i, ok := inherited[name]; ok && !has {
			value, has = i, true
		} else if has {
			var err error
			if value, err = v.expand(s, value); err != nil {
				return err
			}
		}
		if has {
			v.set(name, value)
		}
	}
	return nil
}
