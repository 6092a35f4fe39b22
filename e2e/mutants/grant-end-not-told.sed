# SPDX-License-Identifier: Apache-2.0
#
# A machine that could store by identity memory alone is not declared dead when that ends.
# file: kernel/module/kvm_grant.c
# scenario: kvm-identity
# maps: walk
/^static void sgfs_grant_ended(/,/^}/s/grant->holder, grant->writable)/grant->holder, false)/
