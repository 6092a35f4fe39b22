# SPDX-License-Identifier: Apache-2.0
#
# After an upgrade, API servers trust only the new certificate.
# file: charts/stargate/templates/_certificate.tpl
# test: test/chart/TestOwnCertificate
s/{{- if \$before -}}/{{- if and $before (not $before) -}}/
