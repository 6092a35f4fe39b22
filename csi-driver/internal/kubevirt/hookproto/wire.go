// SPDX-License-Identifier: Apache-2.0

// Package hookproto has the messages of KubeVirt's hooks, as they are on its sockets: of strings and bytes
// alone, a few of them. KubeVirt's own packages would bring all of KubeVirt into the driver.
package hookproto

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/encoding/protowire"
)

// Number is a field's.
type Number = protowire.Number

// Message has the values of each field, in the order of their arrival.
type Message map[Number][][]byte

// Get is a field's last value, as protocol buffers have it.
func (m Message) Get(n Number) []byte {
	if all := m[n]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// Add has one value more.
func (m Message) Add(n Number, value []byte) Message {
	m[n] = append(m[n], value)
	return m
}

// Encode writes it, by number.
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

// Decode reads one; fields that are neither strings nor bytes are left out: no message has any that counts.
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

// Show has no more of a message than how large its parts are: they have what cloud-init is to keep secret.
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

// Codec is for a gRPC server or client that speaks Messages alone.
func Codec() encoding.Codec { return codec{} }

// Name is protocol buffers', as it is what goes over the wire.
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
