# SPDX-License-Identifier: Apache-2.0
#
# Cuts and growth also wait for lapsed systems, which do not answer.
# file: kernel/core/journal/epoch.c
# test: lapse_test
s/return wait_ahead(vol, \([12]\), false, wait_ms);/return wait_ahead(vol, \1, true, wait_ms);/
