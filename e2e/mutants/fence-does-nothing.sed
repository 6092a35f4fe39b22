# SPDX-License-Identifier: Apache-2.0
#
# The host finds that a machine is dead, and tells no system.
# file: kernel/core/member/machine.c
# scenario: node-fence
# maps: walk
/^unsigned int sg_fence_machine(/,/^}/s/if (is_ourselves(/if (true || is_ourselves(/
