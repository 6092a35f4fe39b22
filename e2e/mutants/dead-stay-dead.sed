# SPDX-License-Identifier: Apache-2.0
#
# No system recovers a system that was fenced.
# file: kernel/core/member/recovery.c
# scenario: node
# maps: walk
/^bool sg_recover_slot(/,/^}/s/if (!may_recover(/if (true || !may_recover(/
