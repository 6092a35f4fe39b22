# SPDX-License-Identifier: Apache-2.0
#
# A fenced system releases locks.
# file: kernel/core/lock/lock.c
# test: systems_declared_test
/^void sg_unlock(/,/^}/s/if (sg_is_ours(vol)) {/if (1) {/
