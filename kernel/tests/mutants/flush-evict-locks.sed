# SPDX-License-Identifier: Apache-2.0
#
# The end of an inode waits for the file's lock, which another system may keep.
# file: kernel/core/data/flush.c
# test: crash_flush_test
s/if (!wait || vol->slot < 0)/if ((!wait \&\& 0) || vol->slot < 0)/
