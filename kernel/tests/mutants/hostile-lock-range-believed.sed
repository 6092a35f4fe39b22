# SPDX-License-Identifier: Apache-2.0
#
# Users get the range of a lock exactly as another member has stored it.
# file: kernel/core/filelock/lock_table.c
# test: hostile
/^static bool plausible/,/^}/s/has_range(r)/true/
