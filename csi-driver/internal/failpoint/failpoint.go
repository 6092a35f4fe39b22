// SPDX-License-Identifier: Apache-2.0

// Package failpoint marks the places between which a call can be cut off. Nothing happens at them,
// unless a test has put something into the context: the chaos test dies there.
package failpoint

import "context"

type key struct{}

// With makes at be called with the name of each step that is reached under the context.
func With(ctx context.Context, at func(name string)) context.Context {
	return context.WithValue(ctx, key{}, at)
}

// Reached says that a step is done and the next one is not begun.
func Reached(ctx context.Context, name string) {
	if at, ok := ctx.Value(key{}).(func(string)); ok {
		at(name)
	}
}
