# SPDX-License-Identifier: Apache-2.0
#
# A system that succeeds another one between two loads of an evicting system remains unseen.
# file: kernel/core/inode/opens.c
# test: systems_succession_test
/^static bool anybody_has/,/^}/s/if (sg_load64_acquire(joins) == before)/if (before)/
