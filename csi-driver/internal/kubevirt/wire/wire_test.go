// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"testing"
)

func TestMessage(t *testing.T) {
	m := Message{}.Add(4, []byte("b")).Add(1, nil).Add(4, []byte("a")).Add(536870911, []byte("last"))
	text := m.Encode()
	got, err := Decode(text)
	if err != nil || len(got) != 3 || string(got.Get(4)) != "a" || len(got[4]) != 2 || got.Get(2) != nil {
		t.Errorf("%v, %v", got, err)
	}
	// Field 1 a number, field 2 a string: as protocol buffers have them.
	got, err = Decode([]byte{0x08, 0x96, 0x01, 0x12, 0x01, 'x'})
	if err != nil || len(got) != 1 || string(got.Get(2)) != "x" {
		t.Errorf("%v, %v", got, err)
	}
	for _, wrong := range [][]byte{{0x0a, 0x05, 'x'}, {0x0a}, {0x80}, {0x08}, {0x00}} {
		if m, err := Decode(wrong); err == nil {
			t.Errorf("%x is %v", wrong, m)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Message{}.Add(1, []byte("<domain/>")).Add(3, []byte{1}).Encode())
	f.Add([]byte{0x08, 0x96, 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if err != nil {
			return
		}
		text := m.Encode()
		again, err := Decode(text)
		if err != nil || !bytes.Equal(again.Encode(), text) {
			t.Errorf("%v becomes %v: %v", m, again, err)
		}
	})
}
