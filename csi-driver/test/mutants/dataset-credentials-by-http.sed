# SPDX-License-Identifier: Apache-2.0
#
# Credentials are sent without TLS.
# file: csi-driver/internal/dataset/source/http.go
# test: internal/dataset/source/TestCredentials
s/if u\.Scheme != "https"/if u.Scheme == ""/
