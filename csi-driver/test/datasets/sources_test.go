// SPDX-License-Identifier: Apache-2.0

package datasets

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	oras "oras.land/oras-go/v2"

	"stargate/csi-driver/internal/dataset/fill"
	"stargate/csi-driver/internal/dataset/source"
)

// model is a small data set: one file of several ranges, and others.
func model() map[string][]byte {
	return map[string][]byte{"model.safetensors": bytesOf(5<<20 + 99), "tokenizer/vocab.json": bytesOf(1000), "empty": {}}
}

// artifact stores files as layers that an annotation names, and returns the manifest.
func artifact(t *testing.T, base, repository, annotation string, files map[string][]byte) (digestOf string) {
	t.Helper()
	config := []byte("{}")
	push(t, base, repository, "", "", config)
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: "application/vnd.cncf.model.manifest.v1+json",
		Config:       ocispec.Descriptor{MediaType: "application/vnd.cncf.model.config.v1+json", Digest: digest.FromBytes(config), Size: 2}}
	for name, b := range files {
		push(t, base, repository, "", "", b)
		m.Layers = append(m.Layers, ocispec.Descriptor{MediaType: "application/vnd.cncf.model.weight.v1.raw", Digest: digest.FromBytes(b), Size: int64(len(b)),
			Annotations: map[string]string{annotation: name}})
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	push(t, base, repository, "manifests/v1", m.MediaType, text)
	return "sha256:" + sumOf(text)
}

// An artifact is filled by its tag or its digest. Each layer is a file.
func TestRegistry(t *testing.T) {
	s := registry(t, false)
	at := strings.TrimPrefix(s.URL, "http://")
	files := model()
	for _, annotation := range []string{"org.cncf.model.filepath", ocispec.AnnotationTitle} {
		name := artifact(t, s.URL, "models/m", annotation, files)
		for _, reference := range []string{at + "/models/m:v1", at + "/models/m@" + name} {
			src, err := source.OCI(reference, true, allowed(nil))
			if err != nil {
				t.Fatal(err)
			}
			dir, err := filled(t, src, "")
			if err != nil {
				t.Fatalf("%s: %v", reference, err)
			}
			for name, b := range files {
				has(t, dir, name, b)
			}
		}
	}
	for reference, words := range map[string]string{
		at + "/models/m:none": "not found",
		at + "/other/m:v1":    "not found",
		at + "/models/m@sha256:" + strings.Repeat("0", 64): "not found",
	} {
		src, err := source.OCI(reference, true, allowed(nil))
		if err != nil {
			t.Fatal(err)
		}
		_, err = src.Files(context.Background())
		fails(t, reference, err, words)
	}
}

// Hostile artifacts are refused before a byte is written.
func TestHostileArtifacts(t *testing.T) {
	s := registry(t, false)
	at := strings.TrimPrefix(s.URL, "http://")
	for i, c := range []struct{ annotation, name, words string }{
		{"org.cncf.model.filepath", "../../etc/cron.d/x", "not a plain path"},
		{"org.cncf.model.filepath", "/etc/passwd", "not a plain path"},
		{ocispec.AnnotationTitle, ".stargate/region", "uses this name itself"},
		{"other", "a", "no annotation names its file"},
	} {
		repository := fmt.Sprintf("models/m%d", i)
		artifact(t, s.URL, repository, c.annotation, map[string][]byte{c.name: []byte("x")})
		src, err := source.OCI(at+"/"+repository+":v1", true, allowed(nil))
		if err != nil {
			t.Fatal(err)
		}
		_, err = src.Files(context.Background())
		fails(t, c.name, err, c.words)
	}
	for _, reference := range []string{"", "m", at + "/m", "https://" + at + "/m:v1", at + "/../m:v1"} {
		if _, err := source.OCI(reference, true, allowed(nil)); err == nil {
			t.Errorf("reference %q is accepted", reference)
		}
	}
}

// A registry with passwords: from a Secret of either kind, by TLS only.
func TestRegistryWithPasswords(t *testing.T) {
	s := registry(t, true)
	at, ca := strings.TrimPrefix(s.URL, "https://"), authority(s)
	files := model()
	upload(t, at, s, files)
	auths := fmt.Sprintf(`{"auths": {%q: {"username": %q, "password": %q}}}`, at, user, secret)
	for what, c := range map[string]source.Credentials{
		"a password":          {source.KeyUser: []byte(user), source.KeyPassword: []byte(secret), source.KeyHosts: []byte(at), source.KeyAuthority: ca},
		"Docker's own format": {source.KeyDocker: []byte(auths), source.KeyAuthority: ca},
	} {
		src, err := source.OCI(at+"/models/m:v1", false, allowed(c))
		if err != nil {
			t.Fatal(err)
		}
		dir, err := filled(t, src, "")
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for name, b := range files {
			has(t, dir, name, b)
		}
	}
	for words, c := range map[string]source.Credentials{
		"asks for credentials": {source.KeyAuthority: ca},
		"401 Unauthorized":     {source.KeyUser: []byte(user), source.KeyPassword: []byte("wrong"), source.KeyHosts: []byte(at), source.KeyAuthority: ca},
	} {
		src, err := source.OCI(at+"/models/m:v1", false, allowed(c))
		if err != nil {
			t.Fatal(err)
		}
		_, err = src.Files(context.Background())
		fails(t, "other credentials", err, words)
	}
	_, err := source.OCI(at+"/models/m:v1", true, allowed(source.Credentials{source.KeyUser: []byte(user), source.KeyPassword: []byte(secret), source.KeyHosts: []byte(at)}))
	fails(t, "without TLS", err, "by https only")
	_, err = source.OCI("other.example/m:v1", false, allowed(source.Credentials{source.KeyDocker: []byte(auths)}))
	fails(t, "another registry", err, "no entry for other.example")
}

// upload stores files with ORAS, as its users do.
func upload(t *testing.T, at string, s *httptest.Server, files map[string][]byte) {
	t.Helper()
	ctx := context.Background()
	from := memory.New()
	var layers []ocispec.Descriptor
	for name, b := range files {
		d := ocispec.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromBytes(b), Size: int64(len(b)), Annotations: map[string]string{ocispec.AnnotationTitle: name}}
		if err := from.Push(ctx, d, strings.NewReader(string(b))); err != nil {
			t.Fatal(err)
		}
		layers = append(layers, d)
	}
	m, err := oras.PackManifest(ctx, from, oras.PackManifestVersion1_1, "application/vnd.test", oras.PackManifestOptions{Layers: layers})
	if err != nil {
		t.Fatal(err)
	}
	if err := from.Tag(ctx, m, "v1"); err != nil {
		t.Fatal(err)
	}
	repo, err := remote.NewRepository(at + "/models/m")
	if err != nil {
		t.Fatal(err)
	}
	repo.Client = &auth.Client{Client: s.Client(), Credential: auth.StaticCredential(at, auth.Credential{Username: user, Password: secret})}
	if _, err := oras.Copy(ctx, from, "v1", repo, "v1", oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
}

// Objects with a prefix are filled, with a list or a digest of all files.
func TestStore(t *testing.T) {
	url, bucket := store(t)
	files := model()
	delete(files, "empty")
	var list []fill.File
	text := ""
	for name, b := range files {
		put(t, bucket, "m/v1/"+name, b)
		list = append(list, fill.File{Name: name, Digest: sumOf(b)})
		text += sumOf(b) + "  " + name + "\n"
	}
	put(t, bucket, "other/x", []byte("x"))
	at := []byte(strings.TrimPrefix(url, "http://"))
	keys := source.Credentials{source.KeyAccess: []byte(user), source.KeySecret: []byte(secret), source.KeyHosts: at}
	open := func(c source.S3Config, k source.Credentials) fill.Source {
		t.Helper()
		c.Endpoint, c.Bucket, c.Region = url, "models", "us-east-1"
		src, err := source.S3(c, allowed(k))
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	dir, err := filled(t, open(source.S3Config{Prefix: "m/v1/"}, keys), fill.TreeDigest(list))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		has(t, dir, name, b)
	}
	_, err = filled(t, open(source.S3Config{Prefix: "m/v1/"}, keys), strings.Repeat("0", 64))
	fails(t, "another digest", err, "the list of all files has the digest")

	put(t, bucket, "m/v1/SHA256SUMS", []byte(text))
	if dir, err = filled(t, open(source.S3Config{Prefix: "m/v1/", List: "SHA256SUMS"}, keys), ""); err != nil {
		t.Fatal(err)
	}
	for name, b := range files {
		has(t, dir, name, b)
	}
	put(t, bucket, "m/v1/SHA256SUMS", []byte(text+strings.Repeat("0", 64)+"  missing\n"))
	_, err = filled(t, open(source.S3Config{Prefix: "m/v1/", List: "SHA256SUMS"}, keys), "")
	fails(t, "a file that is missing", err, "no object for file missing")

	_, err = filled(t, open(source.S3Config{Prefix: "m/v1/", List: "none"}, keys), "")
	fails(t, "a list that is missing", err, "404")
	_, err = filled(t, open(source.S3Config{}, source.Credentials{source.KeyAccess: []byte(user), source.KeySecret: []byte("wrong"), source.KeyHosts: at}), "")
	fails(t, "a wrong key", err, "403")
}
