# SPDX-License-Identifier: Apache-2.0
#
# A folder that does not answer keeps a call for ever.
# file: csi-driver/internal/outside/outside.go
# test: internal/outside/TestFolderStopsToAnswer
s/case <-time\.After(afterwards):/case <-time.After(time.Hour):/
