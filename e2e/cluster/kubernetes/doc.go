// SPDX-License-Identifier: Apache-2.0

// Package kubernetes has no code. Its module names programs that e2e/cluster/build compiles.
package kubernetes
