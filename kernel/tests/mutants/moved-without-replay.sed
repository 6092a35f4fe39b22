# SPDX-License-Identifier: Apache-2.0
#
# Committed words of dead systems are replayed after the move, with old addresses.
# file: kernel/core/volume/relocate.c
# test: relocate_test
/^	sg_recover_all(vol);$/d
/^	if (sg_slots_taken(vol) & /,/^	}$/d
