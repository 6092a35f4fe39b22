# SPDX-License-Identifier: Apache-2.0
#
# API servers trust the new certificate alone, at once.
# file: charts/stargate/templates/_certificate.tpl
# test: test/chart/TestOwnCertificate
s/{{- if \$before -}}/{{- if and $before (not $before) -}}/
