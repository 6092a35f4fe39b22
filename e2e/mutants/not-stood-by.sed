# SPDX-License-Identifier: Apache-2.0
#
# The host does not show that it guards a VM: a stopped VM is fenced.
# file: kernel/module/membership.c
# scenario: fence
# maps: walk
s/^	sgfs_holders_guard(fs);$//
