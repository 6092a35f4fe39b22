# SPDX-License-Identifier: Apache-2.0
#
# The module uses wide registers without saving the program's values.
# file: kernel/module/copy_wide.c
# scenario: copies
# maps: walk
s/kernel_fpu_\(begin\|end\)();/barrier();/
