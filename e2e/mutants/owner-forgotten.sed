# SPDX-License-Identifier: Apache-2.0
#
# The module can be unloaded while a volume is mounted.
# file: kernel/module/super.c
# scenario: upgrade
# maps: walk
s/^\t\.owner\t\t\t= THIS_MODULE,$//
