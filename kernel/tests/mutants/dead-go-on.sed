# SPDX-License-Identifier: Apache-2.0
#
# A system that was fenced while it held an inode's lock continues to store in place.
# file: kernel/core/inode/inode_record.c
# test: systems_declared_test
/^int sg_may_change/,/^}/s/int err = sg_may_write(vol);/int err = 0;/
