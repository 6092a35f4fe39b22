# SPDX-License-Identifier: Apache-2.0
#
# A file may map more pages than exist.
# file: kernel/core/data/write.c
# test: hostile
s/sg_met(vol, ref, &mapped, run.off ? run.pages : 0, 1);/sg_met(vol, ref, \&mapped, 0, 1);/
