# SPDX-License-Identifier: Apache-2.0
#
# A file with a wrong digest gets its name.
# file: csi-driver/internal/dataset/fill/fill.go
# test: internal/dataset/fill/TestWrongDigest
s/want != "" \&\& sum != want/want == ""/
