# SPDX-License-Identifier: Apache-2.0
#
# A debt is paid one epoch after it was made.
# file: kernel/core/journal/epoch.c
# test: systems_epoch_test
/^bool sg_epoch_over/,/^}/s/>= 2/>= 1/
