// SPDX-License-Identifier: Apache-2.0

// Package external has no code. Its module names Kubernetes' own tests, and the program that the
// tests' pods run, for e2e/cluster/build-tests.
package external
