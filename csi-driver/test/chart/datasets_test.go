// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"stargate/csi-driver/internal/dataset/v1alpha1"
)

const crdName = "stargatedatasets.stargate.csi.dev"

// crd returns the chart's CRD, in the API server's own form.
func crd(t *testing.T) *apiextensions.CustomResourceDefinition {
	t.Helper()
	is := get[*apiextensionsv1.CustomResourceDefinition](t, rendered(t, "datasets"), crdName).DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(is)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&is.Spec)
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(is, &internal, nil); err != nil {
		t.Fatal(err)
	}
	return &internal
}

// TestCRD checks the CRD like an API server, with the estimated cost of its rules.
func TestCRD(t *testing.T) {
	is := crd(t)
	is.Status.StoredVersions = []string{"v1alpha1"}
	errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), is)
	check(t, len(errs) == 0, "the CRD: %v", errs)
	equal(t, "group", is.Spec.Group, v1alpha1.Group)
	equal(t, "kind", is.Spec.Names.Kind, v1alpha1.Kind)
	equal(t, "resource", is.Spec.Names.Plural, v1alpha1.Resource)
	// Otherwise an uninstallation would delete all data sets.
	equal(t, "policy", is.Annotations["helm.sh/resource-policy"], "keep")
	for _, name := range []string{"dax", "file", "none", "inline"} {
		lacks(t, rendered(t, name), crdName, "StargateDataset")
	}
}

// TestTypesOfDatasets checks that the driver's types and the schema have the same fields. An API
// server would drop a field that the schema does not have.
func TestTypesOfDatasets(t *testing.T) {
	root := schemaOf(t)
	for name, of := range map[string]reflect.Type{"spec": reflect.TypeFor[v1alpha1.Spec](), "status": reflect.TypeFor[v1alpha1.Status]()} {
		sameFields(t, name, root.Properties[name], of)
	}
}

func schemaOf(t *testing.T) apiextensions.JSONSchemaProps {
	t.Helper()
	return *crd(t).Spec.Validation.OpenAPIV3Schema
}

func sameFields(t *testing.T, at string, s apiextensions.JSONSchemaProps, of reflect.Type) {
	t.Helper()
	switch of.Kind() {
	case reflect.Pointer:
		sameFields(t, at, s, of.Elem())
		return
	case reflect.Slice:
		sameFields(t, at+"[]", *s.Items.Schema, of.Elem())
		return
	case reflect.Map:
		sameFields(t, at+"{}", *s.AdditionalProperties.Schema, of.Elem())
		return
	case reflect.Struct:
	default:
		want := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int64: "integer"}[of.Kind()]
		equal(t, "type of "+at, s.Type, want)
		return
	}
	var fields, described []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		fields = append(fields, name)
		sameFields(t, at+"."+name, s.Properties[name], of.Field(i).Type)
	}
	for name := range s.Properties {
		described = append(described, name)
	}
	equal(t, "fields of "+at, sorted(described), sorted(fields))
}

// refusalsOfSchema returns what an API server says about a data set.
func refusalsOfSchema(t *testing.T, object string) []string {
	t.Helper()
	root := schemaOf(t)
	structural, err := schema.NewStructural(&root)
	if err != nil {
		t.Fatal(err)
	}
	o := read(t, object).(map[string]any)
	validator, _, err := validation.NewSchemaValidator(&root)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range validation.ValidateCustomResource(nil, o, validator) {
		said = append(said, e.Error())
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	errs, _ := rules.Validate(context.Background(), nil, structural, o, nil, celconfig.RuntimeCELCostBudget)
	for _, e := range errs {
		said = append(said, e.Error())
	}
	return said
}

// TestDatasetObjects checks which data sets an API server accepts.
func TestDatasetObjects(t *testing.T) {
	sum := strings.Repeat("0", 64)
	spec := func(text string) string {
		return "{apiVersion: stargate.csi.dev/v1alpha1, kind: StargateDataset, metadata: {name: m, namespace: a}, spec: {size: 30Gi, " + text + "}}"
	}
	file := "url: 'https://models.example/m.bin', name: m.bin"
	for _, c := range []struct{ what, object, words string }{
		{"a file", spec("source: {http: {files: [{" + file + ", sha256: '" + sum + "'}]}}"), ""},
		{"a file and a digest of all", spec("digest: 'sha256:" + sum + "', source: {http: {files: [{" + file + "}]}}"), ""},
		{"a list", spec("source: {http: {list: 'https://models.example/m/SHA256SUMS'}}, refreshEvery: 24h"), ""},
		{"a store with a list", spec("source: {s3: {endpoint: 'https://s3.example', bucket: models, prefix: m/, list: SHA256SUMS}}, credentials: {secretName: store}"), ""},
		{"a store with a digest", spec("digest: 'sha256:" + sum + "', source: {s3: {endpoint: 'https://s3.example', bucket: models}}"), ""},
		{"an artifact by its tag", spec("source: {oci: {reference: 'registry.example:5000/models/m:v1'}}, refreshEvery: 10m"), ""},
		{"an artifact by its digest", spec("source: {oci: {reference: 'registry.example/m@sha256:" + sum + "'}}, nodeSelector: {pool: gpu}, fill: Ahead, sealed: false"), ""},
		{"no source", spec("source: {}"), "exactly one of"},
		{"two sources", spec("source: {oci: {reference: 'r.example/m:v1'}, http: {list: 'https://models.example/m/S'}}"), "exactly one of"},
		{"no digest of a file", spec("source: {http: {files: [{" + file + "}]}}"), "the files need digests"},
		{"no digest in a store", spec("source: {s3: {endpoint: 'https://s3.example', bucket: models}}"), "the files need digests"},
		{"files and a list", spec("source: {http: {list: 'https://models.example/m/S', files: [{" + file + ", sha256: '" + sum + "'}]}}"), "files or list"},
		{"a path outside", spec("source: {http: {files: [{url: 'https://m.example/m', name: ../m, sha256: '" + sum + "'}]}}"), "name"},
		{"an absolute path", spec("source: {http: {files: [{url: 'https://m.example/m', name: /m, sha256: '" + sum + "'}]}}"), "name"},
		{"names with dots", spec("source: {http: {files: [{url: 'https://m.example/m', name: ..a/.b/c..d/e., sha256: '" + sum + "'}]}}"), ""},
		{"an inner path outside", spec("source: {http: {files: [{url: 'https://m.example/m', name: a/../../m, sha256: '" + sum + "'}]}}"), "name"},
		{"a password in a URL", spec("source: {http: {list: 'https://user:pw@models.example/m/S'}}"), "list"},
		{"another scheme", spec("source: {http: {list: 'file:///etc/passwd'}}"), "list"},
		{"an artifact without a tag", spec("source: {oci: {reference: 'r.example/m'}}"), "reference"},
		{"a refresh of a digest", spec("source: {oci: {reference: 'r.example/m@sha256:" + sum + "'}}, refreshEvery: 24h"), "refreshEvery is for sources"},
		{"a refresh of given files", spec("source: {http: {files: [{" + file + ", sha256: '" + sum + "'}]}}, refreshEvery: 24h"), "refreshEvery is for sources"},
		{"the largest size", spec("size: 64Ti, source: {http: {list: 'https://models.example/m/S'}}"), ""},
		{"a size in bytes", spec("size: '70368744177664', source: {http: {list: 'https://models.example/m/S'}}"), ""},
		{"a size that no node has", spec("size: '9200000000000000000', source: {http: {list: 'https://models.example/m/S'}}"), "size"},
		{"a size beyond 64 bits", spec("size: 9223372036854775807Ki, source: {http: {list: 'https://models.example/m/S'}}"), "size"},
		{"a size that is no number", spec("size: all, source: {http: {list: 'https://models.example/m/S'}}"), "size"},
		{"an unknown way to fill", spec("fill: Sometimes, source: {http: {list: 'https://models.example/m/S'}}"), "fill"},
		{"no size", "{spec: {source: {http: {list: 'https://models.example/m/S'}}}}", "size"},
	} {
		object := c.object
		if strings.Count(object, "size: ") > 1 {
			object = strings.Replace(object, "size: 30Gi, ", "", 1)
		}
		said := refusalsOfSchema(t, object)
		if c.words == "" {
			check(t, len(said) == 0, "%s: %q", c.what, said)
			continue
		}
		check(t, slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, c.words) }), "%s: %q should say %q", c.what, said, c.words)
	}
}

// TestSecretsOfDatasets checks that the driver may read only the Secrets that the operator lists.
func TestSecretsOfDatasets(t *testing.T) {
	r := rendered(t, "datasets")
	role := get[*rbacv1.Role](t, r, "rel-csi-datasets")
	equal(t, "namespace", role.Namespace, "models")
	equal(t, "rules", role.Rules, rules(t, "- {apiGroups: [''], resources: [secrets], resourceNames: [hub, store], verbs: [get]}"))
	binding := get[*rbacv1.RoleBinding](t, r, "rel-csi-datasets")
	equal(t, "namespace of the binding", binding.Namespace, "models")
	equal(t, "role", binding.RoleRef, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "rel-csi-datasets"})
	equal(t, "subjects", binding.Subjects, []rbacv1.Subject{{Kind: "ServiceAccount", Name: "rel-csi", Namespace: "ns"}})
	lacks(t, rendered(t, "dax"), "resources: [secrets]")
}

// TestDatasetsRefused checks combinations of values with which the driver would not start.
func TestDatasetsRefused(t *testing.T) {
	for words, values := range map[string][]string{
		"tellCluster is false": {"datasets.enabled=true", "tellCluster=false"},
		"mount is none":        {"datasets.enabled=true", "zone.kind=file", "mount=none"},
		"datasets.nodeQuota":   {"datasets.nodeQuota=1Mi"},
		"namespace":            {"datasets.secrets[0].names[0]=hub"},
		"hosts":                {"datasets.hosts[0]=https://models.example"},
		"pattern":              {"datasets.hosts[0]=models.example:5000"},
		"namespace models twice": {"datasets.enabled=true", "datasets.secrets[0].namespace=models", "datasets.secrets[0].names[0]=hub",
			"datasets.secrets[1].namespace=models", "datasets.secrets[1].names[0]=store"},
	} {
		_, err := template(set(values...))
		check(t, err != nil && strings.Contains(err.Error(), words), "%q: %v", values, err)
	}
}

// TestDatasetsOfAnOlderRelease checks an upgrade with the values of an older chart, which lacks
// some.
func TestDatasetsOfAnOlderRelease(t *testing.T) {
	text, err := template(set("datasets.enabled=true", "datasets.grace=null", "datasets.ports=null", "datasets.secrets=null", "apiServerPorts={6443}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"--dataset-grace=10m\n", "{protocol: TCP, port: 443}"} {
		check(t, strings.Contains(text, words), "the chart lacks %q", words)
	}
}
