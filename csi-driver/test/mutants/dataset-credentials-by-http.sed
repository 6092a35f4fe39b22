# SPDX-License-Identifier: Apache-2.0
#
# Credentials are sent without TLS.
# file: csi-driver/internal/dataset/source/http.go
# test: internal/dataset/source/TestCredentials
s/return u\.Scheme != "https"/return u.Scheme == ""/
