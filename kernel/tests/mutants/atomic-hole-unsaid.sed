# SPDX-License-Identifier: Apache-2.0
#
# Replay skips a forged log for pages that the file does not have, without a report.
# file: kernel/core/data/redo.c
# test: atomic_log_test
s/if (err || !run.off || overlap(vol, &run, from, len)) {/if (!run.off)\n\t\t\tcontinue;\n&/
