# SPDX-License-Identifier: Apache-2.0
#
# Who was taken for dead in the midst of moving a volume goes on moving it.
# file: kernel/core/volume/relocate.c
# test: relocate_test
s/if (!sg_is_ours(m->vol) || sg_cas64/if (sg_cas64/
