# SPDX-License-Identifier: Apache-2.0
#
# Who has not noticed growth writes the copy of a root word where it was.
# file: kernel/core/syscopy.c
# test: grow_test
/^\tsg_follow(tx->vol);/d
