// SPDX-License-Identifier: Apache-2.0

// Package failpoint marks the steps of a call at which a test can end the driver. Without a
// function in the context, the marks do nothing.
package failpoint

import "context"

type key struct{}

// With returns a context that holds the function at. Reached calls at with the name of each step.
func With(ctx context.Context, at func(name string)) context.Context {
	return context.WithValue(ctx, key{}, at)
}

// Reached marks that a step is complete and the next step has not begun.
func Reached(ctx context.Context, name string) {
	if at, ok := ctx.Value(key{}).(func(string)); ok {
		at(name)
	}
}
