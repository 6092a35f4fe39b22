# SPDX-License-Identifier: Apache-2.0
#
# A VM gets the volume's memory in small pages.
# file: kernel/module/region.c
# scenario: node-identity
# maps: walk
s/^\t\.huge_fault\t= sgfs_region_huge_fault,$//
