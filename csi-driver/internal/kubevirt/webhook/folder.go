// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
)

// Folder holds the certificate. Helm or cert-manager makes it, and may replace it at any time.
type Folder struct{ Dir string }

// Certificate reads the files each time. An API server connects seldom and keeps its connections.
func (f Folder) Certificate() (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(filepath.Join(f.Dir, "tls.crt"), filepath.Join(f.Dir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return &c, nil
}
