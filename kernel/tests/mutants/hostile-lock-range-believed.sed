# SPDX-License-Identifier: Apache-2.0
#
# Users are told the range of a lock as another member has stored it.
# file: kernel/core/filelock/lock_table.c
# test: hostile
/^static bool plausible/,/^}/s/has_range(r)/true/
