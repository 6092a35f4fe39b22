# SPDX-License-Identifier: Apache-2.0
#
# An upgrade deletes a Secret that is not the chart's.
# file: charts/stargate/templates/_certificate.tpl
# test: test/chart/TestSecretOfAnother
s/{{- if \$ours -}}/{{- if or $ours $authority -}}/
