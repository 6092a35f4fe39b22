# SPDX-License-Identifier: Apache-2.0
#
# An upgrade turns KubeVirt off while VMs name volumes.
# file: charts/stargate/templates/kubevirt-off.yaml
# test: test/chart/TestTurningMachinesOff
s/{{- with \$machines | uniq -}}/{{- with list -}}/
