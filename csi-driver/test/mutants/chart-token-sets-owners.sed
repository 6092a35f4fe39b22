# SPDX-License-Identifier: Apache-2.0
#
# A token may set owners of objects, so the garbage collector may delete these objects.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestOwners
s/- expression: {{ \$owners | quote }}/- expression: 'true'/
