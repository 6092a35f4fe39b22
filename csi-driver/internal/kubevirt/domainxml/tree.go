// SPDX-License-Identifier: Apache-2.0

package domainxml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Some elements in KubeVirt's domains are not safe in libvirtxml. It cannot read an <interface
// type='ethernet'> with a <source>, and it writes other elements back in another form. So this file
// keeps the text as a tree. The package converts only the few elements that it reads or changes to
// libvirtxml's types.

const (
	mostDepth = 64
	qemuSpace = "http://libvirt.org/schemas/domain/qemu/1.0"
)

// node is an XML element. Its name and its attributes keep the prefixes that they have in the text.
type node struct {
	name    xml.Name
	attrs   []xml.Attr
	content []any // *node, or text
}

// parseTree reads the root element. It drops declarations and comments outside of this element,
// because libvirt ignores them.
func parseTree(text []byte) (*node, error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	var root *node
	var open []*node
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			n := &node{name: t.Name, attrs: slices.Clone(t.Attr)}
			switch {
			case len(open) == mostDepth:
				return nil, fmt.Errorf("more than %d nested elements", mostDepth)
			case len(open) > 0:
				parent := open[len(open)-1]
				parent.content = append(parent.content, n)
			case root != nil:
				return nil, errors.New("a second root element after the first")
			default:
				root = n
			}
			open = append(open, n)
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1].name != t.Name {
				return nil, fmt.Errorf("</%s> ends no element", plain(t.Name))
			}
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				n := open[len(open)-1]
				n.content = append(n.content, string(t))
			}
		case xml.Directive:
			return nil, errors.New("a document type, which a domain must not have")
		}
	}
	if root == nil || len(open) > 0 {
		return nil, errors.New("it is not whole")
	}
	return root, nil
}

func plain(name xml.Name) string {
	if name.Space == "" {
		return name.Local
	}
	return name.Space + ":" + name.Local
}

func (n *node) write(b *bytes.Buffer) {
	b.WriteString("<" + plain(n.name))
	for _, a := range n.attrs {
		b.WriteString(" " + plain(a.Name) + `="`)
		xml.EscapeText(b, []byte(a.Value))
		b.WriteString(`"`)
	}
	if len(n.content) == 0 {
		b.WriteString("/>")
		return
	}
	b.WriteString(">")
	for _, c := range n.content {
		switch c := c.(type) {
		case *node:
			c.write(b)
		case string:
			writeText(b, c)
		}
	}
	b.WriteString("</" + plain(n.name) + ">")
}

// writeText writes escaped text. It does not escape line breaks and tabs between elements.
func writeText(b *bytes.Buffer, text string) {
	if strings.Trim(text, " \n\t") == "" {
		b.WriteString(text)
		return
	}
	xml.EscapeText(b, []byte(text))
}

func (n *node) String() string {
	var b bytes.Buffer
	n.write(&b)
	return b.String()
}

func (n *node) attr(local string) string {
	for _, a := range n.attrs {
		if a.Name.Space == "" && a.Name.Local == local {
			return a.Value
		}
	}
	return ""
}

// is reports whether a child of the root has that name. The element commandline must be in QEMU's
// name space.
func (n *node) is(child *node, local string) bool {
	if child.name.Local != local {
		return false
	}
	if local != commandline {
		return child.name.Space == "" && child.attr("xmlns") == ""
	}
	if child.name.Space == "" {
		return child.attr("xmlns") == qemuSpace
	}
	for _, a := range append(slices.Clone(child.attrs), n.attrs...) {
		if a.Name.Space == "xmlns" && a.Name.Local == child.name.Space {
			return a.Value == qemuSpace
		}
	}
	return false
}

func (n *node) children(local string) []*node {
	var all []*node
	for _, c := range n.content {
		if c, ok := c.(*node); ok && n.is(c, local) {
			all = append(all, c)
		}
	}
	return all
}

func (n *node) child(local string) *node {
	if all := n.children(local); len(all) > 0 {
		return all[0]
	}
	return nil
}

// must returns the child of that name. If the child is missing, must adds it.
func (n *node) must(local string) *node {
	if c := n.child(local); c != nil {
		return c
	}
	c := &node{name: xml.Name{Local: local}}
	n.replace(local, []*node{c})
	return c
}

// replace removes all elements of a name, and inserts the new elements where the first removed
// element was, or at the end. It puts each element on a separate line. A second call with the same
// elements changes nothing.
func (n *node) replace(local string, with []*node) {
	var left []any
	at := -1
	for _, c := range n.content {
		if c, ok := c.(*node); ok && n.is(c, local) {
			if k := len(left) - 1; k >= 0 && isBlank(left[k]) {
				left = left[:k]
			}
			if at < 0 {
				at = len(left)
			}
			continue
		}
		left = append(left, c)
	}
	if k := len(left); at < 0 && k > 0 && isBlank(left[k-1]) {
		at = k - 1
	} else if at < 0 {
		at = k
	}
	var in []any
	for _, c := range with {
		in = append(in, "\n", c)
	}
	if len(in) > 0 && at == len(left) {
		in = append(in, "\n")
	}
	n.content = slices.Insert(left, at, in...)
}

func isBlank(c any) bool {
	text, ok := c.(string)
	return ok && strings.Trim(text, " \n\t\r") == ""
}
