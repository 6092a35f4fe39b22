# SPDX-License-Identifier: Apache-2.0
#
# The feature bit of rings, or of sealed files, is not stored.
# file: kernel/core/lock/feature.c
# test: ring_test
s/sb.ro_compat |= feature;/sb.ro_compat |= feature \& 0;/
