# SPDX-License-Identifier: Apache-2.0
#
# The maker of the first ring uses the volume's size from before its wait.
# file: kernel/core/lock/feature.c
# test: ring_first_test
/^\tvol->up->follow(vol);$/d
