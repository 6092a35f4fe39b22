// SPDX-License-Identifier: Apache-2.0

package request

import (
	"github.com/container-storage-interface/spec/lib/go/csi"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// Size returns the size of a volume for a capacity range: the smallest allowed size, or the
// default.
func Size(r *csi.CapacityRange, usual int64) (int64, error) {
	least, most := r.GetRequiredBytes(), r.GetLimitBytes()
	switch {
	case least < 0 || most < 0:
		return 0, errkind.New(errkind.Invalid, "a size is negative: at least %d, at most %d bytes", least, most)
	case most != 0 && most < least:
		return 0, errkind.New(errkind.Invalid, "the range is empty: at least %d bytes, and at most %d", least, most)
	case least > pool.MaxVolume:
		return 0, errkind.New(errkind.OutOfRange, "at least %d bytes are requested; the largest possible volume has %d", least, pool.MaxVolume)
	}
	n := least
	if n == 0 {
		n = usual
		if most != 0 && most < n {
			n = most - most%pool.Extent
		}
	}
	n = pool.RoundUp(max(n, pool.MinVolume), pool.Extent)
	if most != 0 && n > most {
		return 0, errkind.New(errkind.OutOfRange, "limit_bytes is %d, and the smallest possible size is %d: sizes are multiples of 2 MiB from 16 MiB on", most, n)
	}
	return n, nil
}

// Within reports whether the size of an existing volume is in the range.
func Within(n int64, r *csi.CapacityRange) bool {
	return n >= r.GetRequiredBytes() && (r.GetLimitBytes() == 0 || n <= r.GetLimitBytes())
}
