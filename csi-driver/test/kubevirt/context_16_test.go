// SPDX-License-Identifier: Apache-2.0

//go:build kubevirt16

package kubevirt

func encrypt(c *converterContext, encrypted bool) { c.UseLaunchSecurity = encrypted }
