# SPDX-License-Identifier: Apache-2.0
#
# A VM that could store only by identity memory is not fenced when that memory ends.
# file: kernel/module/kvm_grant.c
# scenario: kvm-identity
# maps: walk
/^static void sgfs_grant_ended(/,/^}/s/grant->holder, grant->writable)/grant->holder, false)/
