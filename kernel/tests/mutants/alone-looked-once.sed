# SPDX-License-Identifier: Apache-2.0
#
# A system that was alone when it began to pay does not look again.
# file: kernel/core/deferred/reclaim.c
# test: systems_epoch_test
s/if (alone \&\& !sg_alone(vol))/if (0)/
