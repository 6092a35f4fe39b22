// SPDX-License-Identifier: Apache-2.0

//go:build kubevirt17

package kubevirt

func encrypt(c *converterContext, encrypted bool) { c.UseLaunchSecuritySEV = encrypted }
