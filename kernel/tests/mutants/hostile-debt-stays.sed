# SPDX-License-Identifier: Apache-2.0
#
# What cannot be written off is picked again, for ever.
# file: kernel/core/deferred/reclaim.c
# test: hostile
/^static int write_off/,/^}/s/^	return err;$/	return 0;/
