# SPDX-License-Identifier: Apache-2.0
#
# A ring is made although a system with older software has the volume open.
# file: kernel/core/lock/feature.c
# test: ring_test
s/	if (feature_all_know(vol, feature))/	if (feature_all_know(vol, feature) || 1)/; s/if (!err \&\& !feature_all_know(vol, feature))/if (err > 0)/
