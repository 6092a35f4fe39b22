// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/klog/v2"
)

// mature is the age at which a new certificate replaces the old certificate. By then, each API
// server has received the new authority. The API server's clock has also passed the start of the
// certificate's validity, even if that clock is behind the clock of Helm's machine.
const mature = time.Hour

// Folder holds the certificate. Helm or cert-manager creates the certificate, and may replace it at
// any time. Helm also keeps the previous certificate, which API servers still trust.
type Folder struct{ Dir string }

// Certificate reads the files at each call. Calls are rare, because an API server keeps its
// connections.
func (f Folder) Certificate() (*tls.Certificate, error) { return f.at(time.Now()) }

func (f Folder) at(now time.Time) (*tls.Certificate, error) {
	c, err := f.newest()
	if err == nil && now.After(c.Leaf.NotBefore.Add(mature)) {
		return c, nil
	}
	if before, berr := f.read("previous.crt", "previous.key"); berr == nil && now.Before(before.Leaf.NotAfter) {
		return before, nil
	}
	return c, err
}

// newest returns the certificate that was created last.
func (f Folder) newest() (*tls.Certificate, error) { return f.read("tls.crt", "tls.key") }

// The certificate ends soon when less than this time and less than a sixth of its validity remain.
// The second limit matters for cert-manager, whose certificates may be valid for a few days. The
// alert StargateCertificateEnds has the same limits.
const (
	endsSoon = 21 * 24 * time.Hour
	lifePart = 6
)

func soon(c *x509.Certificate, now time.Time) bool {
	return c.NotAfter.Sub(now) < min(endsSoon, c.NotAfter.Sub(c.NotBefore)/lifePart)
}

// Watch logs repeatedly, until ctx is done, that the certificate ends soon. It reads the end from
// the certificate, because the annotations by which Helm renews it may be wrong.
func (f Folder) Watch(ctx context.Context, every time.Duration) {
	for {
		if c, err := f.newest(); err == nil && soon(c.Leaf, time.Now()) {
			klog.FromContext(ctx).Error(nil, "The webhook's certificate ends soon, or has ended: then no VM with volumes starts. Renew it (docs/kubevirt.md, The webhook's certificate)",
				"ends", c.Leaf.NotAfter)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

func (f Folder) read(certificate, key string) (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(filepath.Join(f.Dir, certificate), filepath.Join(f.Dir, key))
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return &c, nil
}
