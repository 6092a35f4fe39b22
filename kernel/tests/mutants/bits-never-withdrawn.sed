# SPDX-License-Identifier: Apache-2.0
#
# Bits of a slot's last owner keep files forever.
# file: kernel/core/inode/opens.c
# test: systems_opens_test
/^static void withdraw_ref(/,/^}/s/take_back(vol, &ref);/sg_full_fence();/
