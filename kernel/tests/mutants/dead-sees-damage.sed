# SPDX-License-Identifier: Apache-2.0
#
# A fenced system reports changes of other systems as damage.
# file: kernel/core/base/access.c
# test: systems_declared_test
/^int sg_damaged/,/^}/s/if (vol->slot >= 0 && !sg_is_ours(vol))/if (0)/
