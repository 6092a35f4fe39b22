# SPDX-License-Identifier: Apache-2.0
#
# A search that had to skip a chain counts as complete, and is not repeated.
# file: kernel/core/filelock/deadlock.c
# test: userlock_paused_test
s/^\t\t\t\*sure = false;$/\t\t\t;/
