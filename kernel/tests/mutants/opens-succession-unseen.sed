# SPDX-License-Identifier: Apache-2.0
#
# A system that evicts an inode does not notice that a new system took over from a fenced one
# between the two loads. The new system may have the inode open.
# file: kernel/core/inode/opens.c
# test: systems_succession_test
/^static u64 those_who_have/,/^}/s/if (sg_load64_acquire(joins) == before)/if (before)/
