// SPDX-License-Identifier: Apache-2.0

package stargatectl

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A volume's members can store any number in its counters. A number that is too large becomes the
// largest number of the driver, and decode still reads the rest.
func TestNumbersOfAVolume(t *testing.T) {
	for _, into := range []any{&Info{}, &Space{}, &System{}, &Slot{}} {
		kind := reflect.TypeOf(into).Elem()
		for i := range kind.NumField() {
			field := kind.Field(i)
			if field.Type.Kind() != reflect.Int64 && field.Type.Kind() != reflect.Int {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			for number, want := range map[string]int64{
				"18446744073709551615": math.MaxInt64, "9223372036854775808": math.MaxInt64,
				"9223372036854775807": math.MaxInt64, "9223372036854775806": math.MaxInt64 - 1, "7": 7,
			} {
				read := reflect.New(kind)
				text := fmt.Sprintf(`{"other": [{"deep": %s}], "text": "18446744073709551615", %q: %s}`+"\n", number, name, number)
				if err := decode([]byte(text), read.Interface()); err != nil || read.Elem().Field(i).Int() != want {
					t.Errorf("%s.%s of %s: %d, %v", kind, name, number, read.Elem().Field(i).Int(), err)
				}
			}
		}
	}
	for _, text := range []string{"", "{", `{"size": "1"}`, `{"size": 18446744073709551616}`, `{"size": 1.5}`, `{"base": "0x8000000000000000"}`, "{} {}"} {
		if err := decode([]byte(text), &Info{}); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// The driver kills a program that reads one volume and does not end, even if the program ignores
// signals. It does not kill a program that makes a change.
func TestLooksEnd(t *testing.T) {
	tools := programs(t, "trap '' TERM; exec sleep 2").Within(200 * time.Millisecond)
	ctx := context.Background()
	for what, look := range map[string]func() error{
		"info":    func() error { _, err := tools.Info(ctx, "v"); return err },
		"df":      func() error { _, err := tools.Space(ctx, "v"); return err },
		"systems": func() error { _, err := tools.Systems(ctx, "v"); return err },
		"slots":   func() error { _, err := tools.Slots(ctx, "v"); return err },
	} {
		if err := look(); err == nil || !strings.Contains(err.Error(), "200ms") || ctx.Err() != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := tools.Run(ctx, Ctl, "grow"); err != nil {
		t.Errorf("a change was ended: %v", err)
	}
}
