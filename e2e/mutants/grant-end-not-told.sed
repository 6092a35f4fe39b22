# SPDX-License-Identifier: Apache-2.0
#
# If a VM can store only by identity memory, the module does not fence it at the end of that memory.
# file: kernel/module/kvm_grant.c
# scenario: kvm-identity
# maps: walk
/^static void sgfs_grant_ended(/,/^}/s/grant->holder, grant->writable)/grant->holder, false)/
