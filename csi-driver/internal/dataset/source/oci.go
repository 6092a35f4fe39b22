// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"stargate/csi-driver/internal/dataset/fill"
)

// Annotations that name the file of a layer: of ModelPack, and of ORAS.
var nameAnnotations = []string{"org.cncf.model.filepath", ocispec.AnnotationTitle}

const mostManifest = 4 << 20

// oci reads the layers of an artifact.
type oci struct {
	repo   *remote.Repository
	ref    string
	blobs  ranges
	scheme string
}

// OCI returns a source of the files of an artifact: each layer is a file, which an annotation
// names. The reference has a tag or a digest. plain allows HTTP without TLS.
func OCI(reference string, plain bool, a Access) (fill.Source, error) {
	repo, err := remote.NewRepository(reference)
	if err != nil {
		return nil, fmt.Errorf("reference %.128q: must be like registry.example/models/name:tag or ...@sha256:digest", reference)
	}
	if repo.Reference.Reference == "" {
		return nil, fmt.Errorf("reference %.128q: has neither a tag nor a digest", reference)
	}
	client, err := a.client()
	if err != nil {
		return nil, err
	}
	credential, err := credentialOf(a.Credentials, repo.Reference.Registry)
	if err != nil {
		return nil, err
	}
	if plain && credential != auth.EmptyCredential {
		return nil, errors.New("the data set has credentials and plainHTTP: registries get credentials by https only")
	}
	send := &auth.Client{Client: client, Cache: auth.NewCache(), Header: http.Header{"User-Agent": {"stargate-csi"}}}
	if credential != auth.EmptyCredential {
		send.Credential = auth.StaticCredential(repo.Reference.Registry, credential)
	}
	repo.Client, repo.PlainHTTP, repo.MaxMetadataBytes = send, plain, mostManifest
	s := &oci{repo: repo, ref: repo.Reference.Reference, blobs: ranges{do: send}, scheme: "https"}
	if plain {
		s.scheme = "http"
	}
	return s, nil
}

// credentialOf returns the credential for a registry: from a Secret of type
// kubernetes.io/dockerconfigjson, which names the registry, or with a user and a password.
func credentialOf(c Credentials, registry string) (auth.Credential, error) {
	if text := c[KeyDocker]; len(text) > 0 {
		var config struct {
			Auths map[string]struct{ Username, Password, Auth, IdentityToken, RegistryToken string }
		}
		if json.Unmarshal(text, &config) != nil {
			return auth.EmptyCredential, fmt.Errorf("the Secret's key %s is not the configuration of a registry", KeyDocker)
		}
		of, ok := config.Auths[registry]
		if !ok && registry == "docker.io" {
			of, ok = config.Auths["https://index.docker.io/v1/"] // kubectl writes this name
		}
		if !ok {
			return auth.EmptyCredential, fmt.Errorf("the Secret's key %s has no entry for %s", KeyDocker, registry)
		}
		if of.Username == "" && of.Auth != "" {
			var err error
			if of.Username, of.Password, err = decodeAuth(of.Auth); err != nil {
				return auth.EmptyCredential, fmt.Errorf("the Secret's key %s: entry for %s: %w", KeyDocker, registry, err)
			}
		}
		return auth.Credential{Username: of.Username, Password: of.Password, RefreshToken: of.IdentityToken, AccessToken: of.RegistryToken}, nil
	}
	is := auth.Credential{Username: c.word(KeyUser), Password: c.word(KeyPassword)}
	if token := c.word(KeyToken); token != "" {
		is = auth.Credential{AccessToken: token}
	}
	if is == auth.EmptyCredential {
		return is, nil
	}
	return is, c.mayGo(&url.URL{Host: registry})
}

// decodeAuth splits the field auth of a registry's configuration.
func decodeAuth(text string) (user, password string, err error) {
	both, err := base64.StdEncoding.DecodeString(text)
	user, password, ok := strings.Cut(string(both), ":")
	if err != nil || !ok {
		return "", "", errors.New("auth is not USER:PASSWORD in base64")
	}
	return user, password, nil
}

// manifest resolves the reference, and returns the artifact's manifest. Each step checks the digest
// and the size of what it gets.
func (s *oci) manifest(ctx context.Context) (ocispec.Manifest, error) {
	var m ocispec.Manifest
	d, err := oras.Resolve(ctx, s.repo, s.ref, oras.DefaultResolveOptions)
	if err == nil && d.MediaType == ocispec.MediaTypeImageIndex {
		o := oras.ResolveOptions{TargetPlatform: &ocispec.Platform{OS: "linux", Architecture: "amd64"}, MaxMetadataBytes: mostManifest}
		d, err = oras.Resolve(ctx, s.repo, s.ref, o)
	}
	if err != nil {
		return m, s.told(err)
	}
	if d.Size > mostManifest {
		return m, fill.Final(fmt.Errorf("the manifest has more than %d bytes", mostManifest))
	}
	text, err := content.FetchAll(ctx, s.repo, d)
	if err != nil {
		return m, s.told(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fill.Final(errors.New("the manifest cannot be parsed"))
	}
	return m, nil
}

// Files returns the layers.
func (s *oci) Files(ctx context.Context) ([]fill.File, error) {
	m, err := s.manifest(ctx)
	if err != nil {
		return nil, err
	}
	if len(m.Layers) > fill.MostFiles {
		return nil, fill.Final(fmt.Errorf("the artifact has more than %d layers", fill.MostFiles))
	}
	var files []fill.File
	for i, l := range m.Layers {
		f, err := layer(l)
		if err != nil {
			return nil, fill.Final(fmt.Errorf("layer %d of the artifact: %w", i, err))
		}
		files = append(files, f)
	}
	return files, lookAll(ctx, files, s.lookAt)
}

// layer returns the file of a layer.
func layer(l ocispec.Descriptor) (fill.File, error) {
	if err := l.Digest.Validate(); err != nil || l.Digest.Algorithm() != "sha256" {
		return fill.File{}, errors.New("its digest is not one of SHA-256")
	}
	for _, key := range nameAnnotations {
		if name := l.Annotations[key]; name != "" {
			return fill.File{Name: name, Size: l.Size, Digest: l.Digest.Encoded(), At: l.Digest.String()}, fill.CheckName(name)
		}
	}
	return fill.File{}, fmt.Errorf("no annotation names its file (%s, %s); archives of images are not unpacked", nameAnnotations[0], nameAnnotations[1])
}

// lookAt checks the size, and whether the registry sends parts.
func (s *oci) lookAt(ctx context.Context, f *fill.File) error {
	size := f.Size
	if err := s.blobs.look(s.scoped(ctx), s.url(*f), f); err != nil {
		return err
	}
	f.Tag = "" // the digest identifies the content
	if f.Size != size {
		return fill.Final(fmt.Errorf("the registry has %d bytes, and the manifest says %d", f.Size, size))
	}
	return nil
}

// scoped makes the client ask for a token for this repository.
func (s *oci) scoped(ctx context.Context) context.Context {
	return auth.AppendRepositoryScope(ctx, s.repo.Reference, auth.ActionPull)
}

func (s *oci) url(f fill.File) *url.URL {
	ref := s.repo.Reference
	return &url.URL{Scheme: s.scheme, Host: ref.Host(), Path: "/v2/" + ref.Repository + "/blobs/" + f.At}
}

// Open reads a range of a layer.
func (s *oci) Open(ctx context.Context, f fill.File, from, n int64) (io.ReadCloser, error) {
	return s.blobs.open(s.scoped(ctx), s.url(f), f, from, n)
}

// told returns the registry's error in a few words.
func (s *oci) told(err error) error {
	var r *errcode.ErrorResponse
	if errors.As(err, &r) {
		return refusal(s.repo.Reference.Host(), r.StatusCode)
	}
	if errors.Is(err, errdef.ErrNotFound) {
		return fill.Final(fmt.Errorf("artifact %s is not found", s.repo.Reference))
	}
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return fill.Final(fmt.Errorf("%s asks for credentials (spec.credentials)", s.repo.Reference.Host()))
	}
	return fmt.Errorf("%s: %w", s.repo.Reference.Host(), plain(err))
}
