// SPDX-License-Identifier: Apache-2.0

// Package kubevirt has no code: its module names the programs that e2e/cluster/build compiles.
package kubevirt
