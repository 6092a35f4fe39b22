# SPDX-License-Identifier: Apache-2.0
#
# The host says that a machine is dead, and to nobody.
# file: kernel/core/member/machine.c
# scenario: node-fence
# maps: walk
/^unsigned int sg_fence_machine(/,/^}/s/if (is_ourselves(/if (true || is_ourselves(/
