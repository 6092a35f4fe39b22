// SPDX-License-Identifier: Apache-2.0

package stargatectl

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
)

// decode reads a program's output. The output has unsigned 64-bit numbers, and some come from a
// volume, whose members can store any value. The driver's numbers are signed. decode replaces a
// larger value by their maximum, so that one volume's counter does not prevent reading the rest.
func decode(out []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	var all any
	if err := d.Decode(&all); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data follows the JSON")
	}
	least, err := json.Marshal(clamped(all))
	if err != nil {
		return err
	}
	return json.Unmarshal(least, into)
}

func clamped(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = clamped(v[key])
		}
	case []any:
		for i := range v {
			v[i] = clamped(v[i])
		}
	case json.Number:
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil && n > math.MaxInt64 {
			return json.Number(strconv.FormatInt(math.MaxInt64, 10))
		}
	}
	return value
}
