# SPDX-License-Identifier: Apache-2.0
#
# The module revokes the volume from one machine after the other. It waits for each machine without
# a time limit.
# file: kernel/module/kvm_grant.c
# scenario: kvm-poison
# maps: walk
/^static long sgfs_kvm_grant_revoke(/,/^}/s/n += !id->kvm.revoke(id->range, grant);/{ mutex_lock(\&identity_lock); n += !id->kvm.revoke(id->range, grant); mutex_unlock(\&identity_lock); }/
