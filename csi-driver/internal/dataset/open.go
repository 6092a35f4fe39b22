// SPDX-License-Identifier: Apache-2.0

package dataset

import (
	"context"

	"stargate/csi-driver/internal/dataset/fill"
	"stargate/csi-driver/internal/dataset/source"
	"stargate/csi-driver/internal/dataset/v1alpha1"
	"stargate/csi-driver/internal/errkind"
)

// open returns the source of a data set, with the credentials of its Secret.
func (m *Manager) open(ctx context.Context, d *v1alpha1.StargateDataset) (fill.Source, error) {
	a := source.Access{Hosts: m.config.Hosts}
	if len(a.Hosts) == 0 {
		node, err := m.cluster.NodeAddresses(ctx)
		if err != nil {
			return nil, err
		}
		a.Node = node
	}
	if c := d.Spec.Credentials; c != nil {
		secret, err := m.cluster.Secret(ctx, d.Namespace, c.SecretName)
		if err != nil {
			return nil, err
		}
		a.Credentials = secret
	}
	s, err := sourceOf(d, a)
	if err != nil {
		return nil, errkind.Wrap(errkind.Invalid, err, "spec.source")
	}
	return s, nil
}

func sourceOf(d *v1alpha1.StargateDataset, a source.Access) (fill.Source, error) {
	switch s := d.Spec.Source; {
	case s.HTTP != nil && s.HTTP.List != "":
		return source.HTTPList(s.HTTP.List, a)
	case s.HTTP != nil:
		var files []source.HTTPFile
		for _, f := range s.HTTP.Files {
			files = append(files, source.HTTPFile{URL: f.URL, Name: f.Name, Digest: f.SHA256})
		}
		return source.HTTP(files, a)
	case s.S3 != nil:
		c := source.S3Config{Endpoint: s.S3.Endpoint, Region: s.S3.Region, Bucket: s.S3.Bucket, Prefix: s.S3.Prefix, List: s.S3.List}
		return source.S3(c, a)
	case s.OCI != nil:
		return source.OCI(s.OCI.Reference, s.OCI.PlainHTTP, a)
	}
	return nil, errkind.New(errkind.Invalid, "names no source: must have one of http, s3, oci")
}
