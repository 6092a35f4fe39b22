// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// Kinds of KubeVirt that charts and examples use. The keys are the names in KubeVirt's file.
var virtual = map[string]struct{ kind, group, version string }{
	"plugin":                 {"Plugin", "plugin.kubevirt.io", "v1alpha1"},
	"virtualmachine":         {"VirtualMachine", "kubevirt.io", "v1"},
	"virtualmachineinstance": {"VirtualMachineInstance", "kubevirt.io", "v1"},
}

// kubevirt reads a Go file with a map from names of kinds to YAML. KubeVirt's operator creates
// CustomResourceDefinitions from this map.
func (w *writer) kubevirt(path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return err
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		pair, is := n.(*ast.KeyValueExpr)
		if !is || err != nil {
			return err == nil
		}
		name, text := literal(pair.Key), literal(pair.Value)
		of, wanted := virtual[name]
		if !wanted || text == "" {
			return true
		}
		var described struct {
			OpenAPIV3Schema node
		}
		if err = yaml.Unmarshal([]byte(text), &described); err == nil {
			err = w.custom(of.kind, of.group, of.version, described.OpenAPIV3Schema)
			found++
		}
		return true
	})
	if err == nil && found != len(virtual) {
		err = fmt.Errorf("%d of %d kinds are described", found, len(virtual))
	}
	return err
}

// literal returns the value of a string literal in a program. For any other node, it returns an
// empty string.
func literal(e ast.Expr) string {
	basic, is := e.(*ast.BasicLit)
	if !is || basic.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(basic.Value)
	if err != nil {
		return ""
	}
	return text
}
