# SPDX-License-Identifier: Apache-2.0
#
# What the dead had committed is put in place after the move: with addresses of before.
# file: kernel/core/volume/relocate.c
# test: relocate_test
/^	sg_recover_all(vol);$/d
/^	if (sg_slots_taken(vol) & /,/^	}$/d
