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

// decode reads what a program prints. The programs' numbers have 64 bits and no sign, and some come from a volume,
// whose members store there whatever they like. The driver's have a sign: what is larger becomes the largest
// number that they have, so that one volume's counter keeps nobody from reading the rest.
func decode(out []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	var all any
	if err := d.Decode(&all); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind it")
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
