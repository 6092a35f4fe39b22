# SPDX-License-Identifier: Apache-2.0
#
# The host detects that a machine is dead, but does not fence its systems.
# file: kernel/core/member/machine.c
# scenario: node-fence
# maps: walk
/^unsigned int sg_fence_machine(/,/^}/s/if (is_ourselves(/if (true || is_ourselves(/
