# SPDX-License-Identifier: Apache-2.0
#
# The smaller of two values is compared, and then loaded again.
# file: kernel/core/base/base.h
# test: hostile
s/^#define SG_MIN(a, b).*/#define SG_MIN(a, b) ((a) < (b) ? (a) : (b))/
