# SPDX-License-Identifier: Apache-2.0
#
# A pod can write to the copy of all pods.
# file: csi-driver/internal/dataset/publish.go
# test: internal/dataset/TestOneCopy
s/publish\.Options{ReadOnly: true}/publish.Options{}/
