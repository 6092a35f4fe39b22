# SPDX-License-Identifier: Apache-2.0
#
# Who was declared dead with the lock of the inode in its hands goes on in place.
# file: kernel/core/inode/inode_record.c
# test: systems_declared_test
/^int sg_may_change/,/^}/s/int err = sg_may_write(vol);/int err = 0;/
