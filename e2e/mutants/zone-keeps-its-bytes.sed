# SPDX-License-Identifier: Apache-2.0
#
# A zone in plain memory survives a power cut of the node.
# file: e2e/internal/lab/node.go
# scenario: node-dram
# maps: walk
s/return l.Range.Wipe()/return nil/
