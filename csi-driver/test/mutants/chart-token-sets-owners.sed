# SPDX-License-Identifier: Apache-2.0
#
# A token may have the garbage collector delete objects.
# file: charts/stargate/templates/node-policy.yaml
# test: test/chart/TestOwners
s/- expression: {{ \$owners | quote }}/- expression: 'true'/
