# SPDX-License-Identifier: Apache-2.0
#
# A client that makes connections ends those of others.
# file: csi-driver/internal/crowd/crowd.go
# test: internal/monitoring/TestScrapeInACrowd
s/if of\[m\.from\] > of\[c\.open\[at\]\.from\] {/if of[m.from] < 0 {/
