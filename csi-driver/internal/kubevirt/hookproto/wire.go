// SPDX-License-Identifier: Apache-2.0

// Package hookproto encodes and decodes the messages of KubeVirt's hooks. The messages are few and
// have only strings and bytes. An import of KubeVirt's own packages would import all of KubeVirt.
package hookproto

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/encoding/protowire"
)

// Number is the number of a field.
type Number = protowire.Number

// Message holds the values of each field, in the order of their arrival.
type Message map[Number][][]byte

// Get returns a field's last value: the one that counts in protocol buffers.
func (m Message) Get(n Number) []byte {
	if all := m[n]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// Add appends a value to a field, and returns the message.
func (m Message) Add(n Number, value []byte) Message {
	m[n] = append(m[n], value)
	return m
}

// Encode returns the encoded message, with its fields sorted by number.
func (m Message) Encode() []byte {
	var out []byte
	for _, n := range slices.Sorted(maps.Keys(m)) {
		for _, v := range m[n] {
			out = protowire.AppendTag(out, n, protowire.BytesType)
			out = protowire.AppendBytes(out, v)
		}
	}
	return out
}

// Decode reads a message. It drops fields that are neither strings nor bytes, because the hooks do
// not need them.
func Decode(data []byte) (Message, error) {
	m := Message{}
	for len(data) > 0 {
		n, kind, length := protowire.ConsumeTag(data)
		if length < 0 {
			return nil, fmt.Errorf("a message of a hook: %w", protowire.ParseError(length))
		}
		data = data[length:]
		if kind != protowire.BytesType {
			if length = protowire.ConsumeFieldValue(n, kind, data); length < 0 {
				return nil, fmt.Errorf("a message of a hook: %w", protowire.ParseError(length))
			}
			data = data[length:]
			continue
		}
		value, length := protowire.ConsumeBytes(data)
		if length < 0 {
			return nil, fmt.Errorf("a message of a hook: %w", protowire.ParseError(length))
		}
		m.Add(n, value)
		data = data[length:]
	}
	return m, nil
}

// Show returns only the sizes of a message's fields, because cloud-init's data may be secret.
func Show(message any) any {
	m, ok := message.(*Message)
	if !ok {
		return ""
	}
	sizes := map[Number]int{}
	for n := range *m {
		sizes[n] = len(m.Get(n))
	}
	return fmt.Sprint(sizes)
}

type codec struct{}

var _ encoding.Codec = codec{}

// Codec is the codec of a gRPC server or client whose only type is Message.
func Codec() encoding.Codec { return codec{} }

// Name returns the name of the format on the wire, protocol buffers.
func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) ([]byte, error) {
	m, ok := v.(*Message)
	if !ok {
		return nil, fmt.Errorf("a %T is no message of a hook", v)
	}
	return m.Encode(), nil
}

func (codec) Unmarshal(data []byte, v any) error {
	m, ok := v.(*Message)
	if !ok {
		return fmt.Errorf("a %T is no message of a hook", v)
	}
	decoded, err := Decode(append([]byte(nil), data...))
	if err != nil {
		return err
	}
	*m = decoded
	return nil
}
