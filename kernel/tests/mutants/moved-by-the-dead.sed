# SPDX-License-Identifier: Apache-2.0
#
# A system that was fenced during a move continues the move.
# file: kernel/core/volume/relocate.c
# test: relocate_test
s/if (!sg_is_ours(m->vol) || sg_cas64/if (sg_cas64/
