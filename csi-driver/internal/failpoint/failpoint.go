// SPDX-License-Identifier: Apache-2.0

// Package failpoint marks the steps of a call at which a test can end the driver. Without a
// function in the context, nothing happens at them.
package failpoint

import "context"

type key struct{}

// With returns a context: at is called with the name of each step that is reached under it.
func With(ctx context.Context, at func(name string)) context.Context {
	return context.WithValue(ctx, key{}, at)
}

// Reached says that a step is done and the next one is not begun.
func Reached(ctx context.Context, name string) {
	if at, ok := ctx.Value(key{}).(func(string)); ok {
		at(name)
	}
}
