# SPDX-License-Identifier: Apache-2.0
#
# Moved tables are not written back before the superblock names the new base.
# file: kernel/core/volume/relocate.c
# test: crash_relocate_test
/^static void page_done(/,/^}/s/sg_wb(sg_at(m->vol, off), SG_PAGE);/(void)off;/
