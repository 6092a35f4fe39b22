# SPDX-License-Identifier: Apache-2.0
#
# The host does not change the guard's word in a VM's slot, so other systems fence a paused VM.
# file: kernel/module/membership.c
# scenario: fence
# maps: walk
s/^	sgfs_holders_guard(fs);$//
