# SPDX-License-Identifier: Apache-2.0
#
# A call waits forever for a folder that does not answer.
# file: csi-driver/internal/outside/outside.go
# test: internal/outside/TestFolderStopsToAnswer
s/case <-time\.After(afterwards):/case <-time.After(time.Hour):/
