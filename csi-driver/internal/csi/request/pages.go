// SPDX-License-Identifier: Apache-2.0

package request

import (
	"strings"

	"stargate/csi-driver/internal/errkind"
	"stargate/csi-driver/internal/pool"
)

// A token contains the name after which the next page starts. So it remains valid when volumes are
// created and deleted.
const tokenPrefix = "behind:"

// Paginate returns the requested page of a list that is sorted by name.
func Paginate[T any](all []T, name func(T) string, r PageRequest) (page []T, next string, err error) {
	token, most := r.GetStartingToken(), r.GetMaxEntries()
	if most < 0 {
		return nil, "", errkind.New(errkind.Invalid, "max_entries is negative")
	}
	after := ""
	if token != "" {
		last, ok := strings.CutPrefix(token, tokenPrefix)
		if !ok || !pool.ValidName(last) {
			return nil, "", errkind.New(errkind.Busy, "%q is not a token of this driver: list from the beginning", token)
		}
		after = last
	}
	for _, one := range all {
		if name(one) <= after {
			continue
		}
		if most > 0 && len(page) == int(most) {
			return page, tokenPrefix + name(page[most-1]), nil
		}
		page = append(page, one)
	}
	return page, "", nil
}

// PageRequest is a request for a page of a list.
type PageRequest interface {
	GetStartingToken() string
	GetMaxEntries() int32
}

// Volumes returns the requested page of all volumes.
func Volumes(all []pool.Glance, r PageRequest) (page []pool.Glance, next string, err error) {
	return Paginate(all, func(g pool.Glance) string { return g.Name }, r)
}
