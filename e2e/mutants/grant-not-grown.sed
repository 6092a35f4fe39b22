# SPDX-License-Identifier: Apache-2.0
#
# KVM does not get the new size of a grown volume.
# file: kernel/module/kvm_grant.c
# scenario: kvm-grow
# maps: walk
/^static int sgfs_follow_growth(/,/^}/s/err = id->kvm.extend(id->range, size);/err = 0;/
