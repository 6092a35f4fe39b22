// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
)

// Credentials has the content of a Secret. It never prints its values.
type Credentials map[string][]byte

func (c Credentials) String() string   { return fmt.Sprintf("%d credentials", len(c)) }
func (c Credentials) GoString() string { return c.String() }

// Keys of a Secret.
const (
	KeyHosts     = "hosts"    // hosts that may get the credentials
	KeyToken     = "token"    // of HTTP
	KeyUser      = "username" // of HTTP and OCI
	KeyPassword  = "password"
	KeyAccess    = "accessKeyID" // of S3
	KeySecret    = "secretAccessKey"
	KeySession   = "sessionToken"
	KeyAuthority = "ca.crt" // certificates of authorities, of all
	KeyDocker    = ".dockerconfigjson"
)

// word returns a value without the space around it. A value from a file often ends with a newline.
func (c Credentials) word(key string) string { return string(bytes.TrimSpace(c[key])) }

// mayGo refuses to send the credentials to a host that the Secret does not name. The author of a
// data set chooses the host, and may have no right to read the Secret. So the Secret's owner, not
// the author, decides which hosts get the content.
func (c Credentials) mayGo(u *url.URL) error {
	hosts := strings.FieldsFunc(string(c[KeyHosts]), func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	for _, h := range hosts {
		pattern, port, _ := strings.Cut(h, ":")
		if port == u.Port() && (Access{Hosts: []string{pattern}}).listed(u.Hostname()) {
			return nil
		}
	}
	return fmt.Errorf("the Secret's key %s does not name %s, so this host gets no credentials: the Secret's owner must add it", KeyHosts, u.Host)
}
