# SPDX-License-Identifier: Apache-2.0
#
# Tables that have been moved are not written back before the volume is said to be elsewhere.
# file: kernel/core/relocate.c
# test: crash_relocate_test
/^		sg_wb(sg_at(m->vol, table), SG_PAGE);$/s/sg_wb.*/sg_relax();/
