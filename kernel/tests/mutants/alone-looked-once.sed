# SPDX-License-Identifier: Apache-2.0
#
# A system that was the only one when it began to reclaim does not check that again.
# file: kernel/core/deferred/reclaim.c
# test: systems_epoch_test
s/if (alone \&\& !sg_alone(vol))/if (0)/
