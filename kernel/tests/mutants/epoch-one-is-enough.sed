# SPDX-License-Identifier: Apache-2.0
#
# A deferred free is reclaimed after one epoch instead of two.
# file: kernel/core/journal/epoch.c
# test: systems_epoch_test
/^bool sg_epoch_over/,/^}/s/>= 2/>= 1/
