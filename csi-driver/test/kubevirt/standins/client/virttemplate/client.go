// SPDX-License-Identifier: Apache-2.0

// Package virttemplate replaces a package that the module proxy does not have. It can be compiled,
// but provides no client.
package virttemplate

import (
	"errors"

	"k8s.io/client-go/rest"
)

// Client is never created.
type Client struct{}

// Group is one group of the API.
type Group struct{}

// NewForConfig always fails.
func NewForConfig(*rest.Config) (*Client, error) {
	return nil, errors.New("there is no client for templates of VMs in this test")
}

// TemplateV1beta1 is never called, because there is no Client.
func (*Client) TemplateV1beta1() *Group { return &Group{} }

// RESTClient is never called either.
func (*Group) RESTClient() rest.Interface { return nil }
