# SPDX-License-Identifier: Apache-2.0
#
# Slow sources of several namespaces keep all turns of a node.
# file: csi-driver/internal/dataset/slots.go
# test: internal/dataset/TestTurnsOfSlowSources
s/if s\.waiting <= s\.leaving {/if s.waiting >= 0 {/
