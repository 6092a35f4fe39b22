// SPDX-License-Identifier: Apache-2.0

// Package source reads the files of data sets from servers: by HTTP, from a store with the protocol
// of S3, and from an OCI registry. All servers are hostile: they may name any file, send any size,
// and redirect to any address.
package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"stargate/csi-driver/internal/dataset/fill"
)

// Access describes what a source may reach, and how.
type Access struct {
	// Hosts are the hosts that the operator allows, like models.example or *.models.example.
	// Without them, all hosts are allowed whose address is not local: a data set's author must
	// not reach services of the node.
	Hosts       []string
	Credentials Credentials
	// Node has the addresses of the node, which count as local.
	Node []netip.Addr
}

const (
	dialLimit   = 10 * time.Second
	headerLimit = 30 * time.Second
	mostHops    = 5
	readBuffer  = 64 << 10
)

// listed reports whether the operator has named a host.
func (a Access) listed(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, pattern := range a.Hosts {
		pattern = strings.ToLower(pattern)
		below, wild := strings.CutPrefix(pattern, "*")
		if host == pattern || wild && strings.HasPrefix(below, ".") && strings.HasSuffix(host, below) {
			return true
		}
	}
	return false
}

// metadata has the addresses of clouds' services of metadata that are not link-local: of AWS,
// Alibaba and Azure. NAT64 may lead to any IPv4 address, so its prefix counts as well.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("fd00:ec2::/32"),
	netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("168.63.129.16/32"),
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
}

// local reports whether an address is of the node itself, of its link, or of a cloud's service of
// metadata.
func (a Access) local(address string) bool {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return true
	}
	ip := at.Addr().Unmap()
	if slices.Contains(a.Node, ip) || slices.ContainsFunc(metadata, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return true
	}
	everybody := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	return !ip.IsValid() || ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() || ip == everybody
}

// dial connects to a host that is allowed. It checks the address to which the name leads, so a name
// cannot lead to a local address.
func (a Access) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialLimit}
	switch {
	case a.listed(host):
	case len(a.Hosts) > 0:
		return nil, fill.Final(fmt.Errorf("the operator does not allow data sets from host %q (datasets.hosts)", host))
	default:
		d.Control = func(_, address string, _ syscall.RawConn) error {
			if a.local(address) {
				return fill.Final(fmt.Errorf("host %q has the local address %s, which the operator has not allowed (datasets.hosts)", host, address))
			}
			return nil
		}
	}
	return d.DialContext(ctx, network, address)
}

// client returns an HTTP client for one source. It speaks HTTP/1.1: each range has its own
// connection, so that a slow range does not delay others, and memory for unread bytes is small.
func (a Access) client() (*http.Client, error) {
	t := &http.Transport{
		DialContext: a.dial, TLSHandshakeTimeout: dialLimit, ResponseHeaderTimeout: headerLimit, IdleConnTimeout: time.Minute,
		MaxIdleConnsPerHost: 2 * fill.Workers, DisableCompression: true, ReadBufferSize: readBuffer,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	if pem := a.Credentials[KeyAuthority]; len(pem) > 0 {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("the Secret's key %s has no certificate", KeyAuthority)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: t, CheckRedirect: mayFollow}, nil
}

// mayFollow limits redirects. Go's client keeps credentials for other ports and for hosts below the
// first one, and names the former URL, which may have a signature. mayFollow removes both.
func mayFollow(to *http.Request, via []*http.Request) error {
	if len(via) > mostHops {
		return fmt.Errorf("the server redirects more than %d times", mostHops)
	}
	if via[0].URL.Scheme == "https" && to.URL.Scheme != "https" {
		return fill.Final(errors.New("the server redirects from https to http"))
	}
	to.Header.Del("Referer")
	if to.URL.Host != via[0].URL.Host {
		to.Header.Del("Authorization")
	}
	return nil
}

// checkURL refuses URLs that the driver does not follow. A password in a URL would be in the object
// and in logs.
func checkURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("a URL cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("URL of %q: must begin with https:// or http://", u.Host)
	case u.User != nil:
		return nil, fmt.Errorf("URL of %q: has a user or password; put them into a Secret (spec.credentials)", u.Host)
	}
	return u, nil
}

// plain removes URLs from an error of the HTTP client: they may have signatures.
func plain(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return plain(of.Err)
	}
	return err
}
