# SPDX-License-Identifier: Apache-2.0
#
# Truncated pages are not deferred, and are therefore lost.
# file: kernel/core/table/table_cut.c
# test: model_test
/^static void defer_pending/,/^}/s/sg_defer_run(c->tx, c->run, c->run_pages);/(void)0;/
