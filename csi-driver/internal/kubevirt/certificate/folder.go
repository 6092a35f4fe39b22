// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/tls"
	"fmt"
	"path/filepath"
)

// Folder is where somebody else, cert-manager, puts certificates, and renews them.
type Folder struct{ Dir string }

// Certificate reads what is there now: an API server connects seldom, and keeps its connections.
func (f Folder) Certificate() (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(filepath.Join(f.Dir, "tls.crt"), filepath.Join(f.Dir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return &c, nil
}
