# SPDX-License-Identifier: Apache-2.0
#
# Cuts and growth wait for a lapsed system as well, which does not answer.
# file: kernel/core/journal/epoch.c
# test: lapse_test
s/return wait_ahead(vol, \([12]\), false, wait_ms);/return wait_ahead(vol, \1, true, wait_ms);/
