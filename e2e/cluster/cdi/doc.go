// SPDX-License-Identifier: Apache-2.0

// Package cdi has no code. Its go.mod names the programs of KubeVirt's CDI, which fills disks of
// VMs.
package cdi
