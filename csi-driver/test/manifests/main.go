// SPDX-License-Identifier: Apache-2.0

// manifests FILE... reads what a chart has been rendered to as an API server would: a kind that
// Kubernetes does not have, a key that the kind does not have, one that is there twice, or a value of
// another type is an error. Kinds of other projects are named on the command line: -except GROUP,GROUP.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func main() {
	except := flag.String("except", "", "API groups whose kinds are not looked at")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "manifests: which files?")
		os.Exit(2)
	}
	read := 0
	for _, path := range flag.Args() {
		n, err := check(path, strings.Split(*except, ","))
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(1)
		}
		read += n
	}
	fmt.Println(read, "manifests")
}

func decoder() (runtime.Decoder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme,
		corev1.AddToScheme,
		networkingv1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, storagev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), nil
}

// check reads all documents of a file; how many there are.
func check(path string, except []string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	d, err := decoder()
	if err != nil {
		return 0, err
	}
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer documents.Close()
	buffer := make([]byte, len(text)+1)
	for read := 0; ; {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		if err != nil {
			return 0, err
		}
		one := buffer[:n]
		if !hasContent(one) {
			continue
		}
		read++
		text, err := yaml.ToJSON(one)
		if err != nil {
			return 0, fmt.Errorf("document %d: %w", read, err)
		}
		kind, err := json.DefaultMetaFactory.Interpret(text)
		if err == nil && !slices.Contains(except, cmp.Or(kind.Group, "core")) {
			_, _, err = d.Decode(one, nil, nil)
		}
		if err != nil {
			return 0, fmt.Errorf("document %d: %w", read, err)
		}
	}
}

func hasContent(document []byte) bool {
	for _, line := range strings.Split(string(document), "\n") {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return true
		}
	}
	return false
}
