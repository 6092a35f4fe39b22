# SPDX-License-Identifier: Apache-2.0
#
# A brief call waits for the lock of its chain as long as another system holds it.
# file: kernel/core/filelock/lock_table.c
# test: userlock_brief_test
/^static enum sg_userlock_patience lock_table_patience/,/^}/s/return q->brief ? SG_USERLOCK_BRIEF : SG_USERLOCK_PATIENT;/return SG_USERLOCK_PATIENT;/
