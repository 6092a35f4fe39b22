// SPDX-License-Identifier: Apache-2.0

// schemas -out FOLDER -openapi FILE [-kubevirt FILE] CRD... writes a JSON schema for each described
// kind to FOLDER/KIND-GROUP-VERSION.json, where kubeconform reads it. The schemas allow only
// described keys. -openapi is Kubernetes' own description, and -kubevirt is KubeVirt's Go file with
// the descriptions of its kinds.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// node is a piece of JSON schema.
type node = map[string]any

const (
	here = "#/definitions/"
	meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	// Kubernetes accepts more values for these types than their definitions allow.
	intOrString = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
	quantity    = "io.k8s.apimachinery.pkg.api.resource.Quantity"
)

func main() {
	out := flag.String("out", "", "folder for the schemas; created if it does not exist")
	openapi := flag.String("openapi", "", "Kubernetes' api/openapi-spec/swagger.json")
	kubevirt := flag.String("kubevirt", "", "KubeVirt's components/validations_generated.go")
	flag.Parse()
	if err := run(*out, *openapi, *kubevirt, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

func run(out, openapi, kubevirt string, crds []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	definitions, written, err := kubernetes(out, openapi)
	if err != nil {
		return fmt.Errorf("%s: %w", openapi, err)
	}
	w := writer{out: out, definitions: definitions}
	for _, path := range crds {
		if err := w.file(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if kubevirt != "" {
		if err := w.kubevirt(kubevirt); err != nil {
			return fmt.Errorf("%s: %w", kubevirt, err)
		}
	}
	fmt.Println(written+w.written, "schemas")
	return nil
}

// put writes the schema of a kind, with the definitions to which it refers.
func put(out, kind, group, version string, schema, definitions node) error {
	needed := node{}
	if err := gather(schema, definitions, needed); err != nil {
		return err
	}
	whole := maps.Clone(schema)
	whole["$schema"] = "http://json-schema.org/draft-07/schema#"
	whole["definitions"] = needed
	text, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	// The core group has no name, so kubeconform uses the version in place of the group.
	name := fmt.Sprintf("%s-%s-%s.json", strings.ToLower(kind), cmp.Or(group, version), version)
	return os.WriteFile(filepath.Join(out, name), text, 0o644)
}

// gather adds to needed the definitions to which from refers.
func gather(from any, definitions, needed node) error {
	switch v := from.(type) {
	case node:
		if ref, is := v["$ref"].(string); is {
			name := strings.TrimPrefix(ref, here)
			if _, have := needed[name]; have {
				return nil
			}
			def, have := definitions[name]
			if !have {
				return fmt.Errorf("%s is not defined", ref)
			}
			needed[name] = def
			return gather(def, definitions, needed)
		}
		for _, one := range v {
			if err := gather(one, definitions, needed); err != nil {
				return err
			}
		}
	case []any:
		for _, one := range v {
			if err := gather(one, definitions, needed); err != nil {
				return err
			}
		}
	}
	return nil
}

// tighten forbids undescribed keys in each object that describes keys.
func tighten(schema any) {
	switch v := schema.(type) {
	case node:
		properties, described := v["properties"].(node)
		if described && v["additionalProperties"] == nil && v["x-kubernetes-preserve-unknown-fields"] != true {
			v["additionalProperties"] = false
		}
		for _, one := range properties { // these are names of properties, not keywords of the schema
			tighten(one)
		}
		for key, one := range v {
			if key != "properties" {
				tighten(one)
			}
		}
	case []any:
		for _, one := range v {
			tighten(one)
		}
	}
}

// kubernetes writes the schemas of the kinds in Kubernetes' own description. The definitions in it
// also describe the metadata of other projects' kinds.
func kubernetes(out, path string) (node, int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	var spec struct {
		Definitions node `json:"definitions"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, 0, err
	}
	tighten(spec.Definitions)
	spec.Definitions[intOrString] = node{"type": []any{"string", "integer"}}
	spec.Definitions[quantity] = node{"type": []any{"string", "number"}}
	written := 0
	for name, def := range spec.Definitions {
		schema, _ := def.(node)
		kinds, _ := schema["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 { // a kind that belongs to all groups is no separate object
			continue
		}
		one, _ := kinds[0].(node)
		kind, _ := one["kind"].(string)
		group, _ := one["group"].(string)
		version, _ := one["version"].(string)
		if err := put(out, kind, group, version, schema, spec.Definitions); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", name, err)
		}
		written++
	}
	if written == 0 {
		return nil, 0, errors.New("it describes no kinds")
	}
	return spec.Definitions, written, nil
}

// writer writes the schemas of a CustomResourceDefinition.
type writer struct {
	out         string
	definitions node
	written     int
}

// custom writes the schema of one version of another project's kind.
func (w *writer) custom(kind, group, version string, schema node) error {
	properties, _ := schema["properties"].(node)
	if properties == nil {
		return fmt.Errorf("%s: nothing is described", kind)
	}
	tighten(schema)
	properties["metadata"] = node{"$ref": here + meta}
	w.written++
	return put(w.out, kind, group, version, schema, w.definitions)
}

// file reads the CustomResourceDefinitions of a file.
func (w *writer) file(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	before := w.written
	for {
		var crd struct {
			Spec struct {
				Group string
				Names struct{ Kind string }
				// Each version has a name and a schema.
				Versions []struct {
					Name   string
					Schema struct {
						OpenAPIV3Schema node
					}
				}
			}
		}
		err := documents.Decode(&crd)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for _, v := range crd.Spec.Versions {
			if err := w.custom(crd.Spec.Names.Kind, crd.Spec.Group, v.Name, v.Schema.OpenAPIV3Schema); err != nil {
				return err
			}
		}
	}
	if w.written == before {
		return errors.New("no CustomResourceDefinition")
	}
	return nil
}
