// SPDX-License-Identifier: Apache-2.0

package debian

import "sort"

func sorted(set map[string]bool) []string {
	var list []string
	for item := range set {
		list = append(list, item)
	}
	sort.Strings(list)
	return list
}

// Union merges package lists into one sorted list without repetitions.
func Union(lists ...[]string) []string {
	set := map[string]bool{}
	for _, list := range lists {
		for _, item := range list {
			set[item] = true
		}
	}
	return sorted(set)
}
