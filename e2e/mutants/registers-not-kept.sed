# SPDX-License-Identifier: Apache-2.0
#
# Wide registers are used as if they belonged to the kernel.
# file: kernel/module/copy_wide.c
# scenario: copies
# maps: walk
s/kernel_fpu_\(begin\|end\)();/barrier();/
