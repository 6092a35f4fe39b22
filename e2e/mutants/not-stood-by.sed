# SPDX-License-Identifier: Apache-2.0
#
# The host does not show that a machine is there: who is stopped is taken for dead.
# file: kernel/module/membership.c
# scenario: fence
# maps: walk
s/^	sgfs_holders_stand_by(fs);$//
