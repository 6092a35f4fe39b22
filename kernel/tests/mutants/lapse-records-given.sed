# SPDX-License-Identifier: Apache-2.0
#
# A free record that a fenced system was filling is used immediately.
# file: kernel/core/lock/lock.c
# test: lapse_test
s/(fills \&\& sg_holder_lapses(vol, word))/(fills \&\& word == 1)/
