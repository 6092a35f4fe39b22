# SPDX-License-Identifier: Apache-2.0
#
# No flush removes translations of windows from the processors.
# file: kernel/module/window.c
# scenario: stale
# maps: splice shadow
s/on_each_cpu(sgfs_flush_cpu, (void \*)(unsigned long)globals, 1);/(void)sgfs_flush_cpu;/
