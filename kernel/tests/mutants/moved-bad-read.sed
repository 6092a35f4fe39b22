# SPDX-License-Identifier: Apache-2.0
#
# Whoever moves a volume looks into pages of records that cannot be read.
# file: kernel/core/volume/relocate.c
# test: relocate_test
s/^		if (!sg_is_lost(m->vol, off))	.*/		if (true)/
