# SPDX-License-Identifier: Apache-2.0
#
# A late change applies to any file that now has the number.
# file: kernel/core/inode/inode_record.c
# test: systems_opens_test
/^int sg_may_change/,/^}/s/return sg_is_same(vol, ref) \&\& /return /
