# SPDX-License-Identifier: Apache-2.0
#
# A client that opens connections closes those of other clients.
# file: csi-driver/internal/crowd/crowd.go
# test: internal/monitoring/TestScrapeInACrowd
s/if of\[m\.from\] > of\[c\.open\[at\]\.from\] {/if of[m.from] < 0 {/
