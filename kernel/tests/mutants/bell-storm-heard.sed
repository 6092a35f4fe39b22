# SPDX-License-Identifier: Apache-2.0
#
# A sender that rings again and again is muted for a short time only.
# file: kernel/core/base/doorbell.c
# test: doorbell_test
s/rate->mute_ms = SG_MIN(2 \* rate->mute_ms, SG_MUTE_MS_MAX);/rate->mute_ms = SG_MUTE_MS_MIN;/
