# SPDX-License-Identifier: Apache-2.0
#
# A reader uses the length in a record without a check.
# file: kernel/core/uapi/ringword.h
# test: ring_forged_test
s/ n > tail - pos || n > r->grains \/ 2 ||/ !n ||/
