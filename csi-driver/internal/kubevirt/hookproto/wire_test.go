// SPDX-License-Identifier: Apache-2.0

package hookproto

import (
	"bytes"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestMessage(t *testing.T) {
	m := Message{}.Add(4, []byte("b")).Add(1, nil).Add(4, []byte("a")).Add(536870911, []byte("last"))
	text := m.Encode()
	got, err := Decode(text)
	if err != nil || len(got) != 3 || string(got.Get(4)) != "a" || len(got[4]) != 2 || got.Get(2) != nil {
		t.Errorf("%v, %v", got, err)
	}
	// Field 1 is a number, field 2 a string.
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

var onlySizes = regexp.MustCompile(`^map\[([0-9]+:[0-9]+ ?)*\]$`)

// Decode either refuses the bytes, or returns a message that is not larger than they are. The
// message stays the same when it is encoded and decoded again. Show prints only the sizes of its
// fields.
func FuzzDecode(f *testing.F) {
	f.Add(Message{}.Add(1, []byte("<domain/>")).Add(3, []byte{1}).Encode())
	f.Add([]byte{0x08, 0x96, 0x01})
	f.Add([]byte{0x0b, 0x0b, 0x0c, 0x0c, 0x12, 0x00})             // groups, which are obsolete
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}) // longer than anything
	f.Fuzz(func(t *testing.T, data []byte) {
		var m Message
		if err := Codec().Unmarshal(data, &m); err != nil {
			if m != nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("the refused bytes become %v, with the error %q", m, err)
			}
			return
		}
		length := 0
		for n := range m {
			for _, v := range m[n] {
				length += len(v)
			}
		}
		if length > len(data) {
			t.Errorf("%d bytes of %d", length, len(data))
		}
		text, err := Codec().Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(text)
		if err != nil || !bytes.Equal(again.Encode(), text) || !reflect.DeepEqual(again, m) {
			t.Errorf("%v becomes %v: %v", m, again, err)
		}
		if said := Show(&m).(string); !onlySizes.MatchString(said) {
			t.Errorf("the log has %q", said)
		}
	})
}
